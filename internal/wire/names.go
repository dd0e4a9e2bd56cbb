package wire

import (
	"cmp"
	"hash/maphash"
	"slices"
	"unicode"
	"unicode/utf8"
)

// nameSet finds duplicate names in the objects that are open. The names of all
// of them lie in one slice, the innermost object's last, as offsets: a set that
// waits for its next use holds on to no message.
type nameSet struct {
	b      []byte
	all    []seenName
	open   []openObject
	arena  []byte // names that had to be unescaped or folded
	hashes []hashedName
}

// seenName is a name, unescaped and folded where case does not count: the bytes
// from lo to hi of the input or of the arena. The quote before it is at at.
type seenName struct {
	lo, hi, at int
	arena      bool
}

// openObject is where the names of an object begin.
type openObject struct{ names, arena int }

type hashedName struct {
	hash  uint64
	index int
}

// fewNames is up to how many names are compared each with each. Above it they
// are sorted by a seeded hash, so that an object of a hundred thousand members
// costs n log n and nobody can choose names that collide.
const fewNames = 16

var nameSeed = maphash.MakeSeed()

func (n *nameSet) push() {
	n.open = append(n.open, openObject{len(n.all), len(n.arena)})
}

func (n *nameSet) text(e seenName) []byte {
	if e.arena {
		return n.arena[e.lo:e.hi]
	}
	return n.b[e.lo:e.hi]
}

// add notes the name of the innermost object that is the input from lo to hi,
// and returns it unescaped and, with fold, folded.
func (n *nameSet) add(lo, hi int, escaped, fold bool) []byte {
	e := seenName{lo: lo, hi: hi, at: lo - 1}
	if escaped {
		e.lo, e.arena = len(n.arena), true
		n.arena = appendUnescaped(n.arena, n.b[lo:hi])
		e.hi = len(n.arena)
	}
	if text := n.text(e); fold && !isFolded(text) {
		e.lo, e.arena = len(n.arena), true
		n.arena = appendFolded(n.arena, text)
		e.hi = len(n.arena)
	}
	n.all = append(n.all, e)
	return n.text(e)
}

// pop ends the innermost object and returns the offset of a name that repeats
// another one of it, or -1.
func (n *nameSet) pop() int {
	top := n.open[len(n.open)-1]
	names := n.all[top.names:]
	at := n.repeated(names)
	n.open = n.open[:len(n.open)-1]
	n.all = n.all[:top.names]
	n.arena = n.arena[:top.arena]
	return at
}

func (n *nameSet) repeated(names []seenName) int {
	if len(names) <= fewNames {
		for i := 1; i < len(names); i++ {
			x := n.text(names[i])
			for _, other := range names[:i] {
				if other.hi-other.lo == len(x) && string(n.text(other)) == string(x) {
					return names[i].at
				}
			}
		}
		return -1
	}
	n.hashes = n.hashes[:0]
	for i := range names {
		n.hashes = append(n.hashes, hashedName{maphash.Bytes(nameSeed, n.text(names[i])), i})
	}
	slices.SortFunc(n.hashes, func(a, b hashedName) int {
		return cmp.Or(cmp.Compare(a.hash, b.hash), cmp.Compare(a.index, b.index))
	})
	for i, h := range n.hashes {
		x := n.text(names[h.index])
		for j := i - 1; j >= 0 && n.hashes[j].hash == h.hash; j-- {
			if string(n.text(names[n.hashes[j].index])) == string(x) {
				return names[h.index].at
			}
		}
	}
	return -1
}

// isFolded says that appendFolded would change nothing, as far as that is
// cheap to see.
func isFolded(name []byte) bool {
	for _, c := range name {
		if c-'A' <= 25 || c >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// appendFolded appends name so that two names are equal exactly when Unicode
// simple folding makes them equal. That is how lenient decoders match names
// (encoding/json takes "ſ" for "s" and the Kelvin sign for "k"), so it is how
// names are told apart here.
func appendFolded(dst, name []byte) []byte {
	for i := 0; i < len(name); {
		c := name[i]
		if c < utf8.RuneSelf {
			if c-'A' <= 25 {
				c += 'a' - 'A'
			}
			dst = append(dst, c)
			i++
			continue
		}
		r, n := utf8.DecodeRune(name[i:])
		if r == utf8.RuneError && n == 1 {
			dst = append(dst, c) // part of a lone surrogate
			i++
			continue
		}
		dst = utf8.AppendRune(dst, foldRune(r))
		i += n
	}
	return dst
}

// foldRune gives the one rune that stands for all of r's cases.
func foldRune(r rune) rune {
	least := r
	for f := unicode.SimpleFold(r); f != r; f = unicode.SimpleFold(f) {
		least = min(least, f)
	}
	if least-'A' <= 25 && least >= 'A' {
		least += 'a' - 'A'
	}
	return least
}
