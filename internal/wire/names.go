package wire

import (
	"cmp"
	"hash/maphash"
	"slices"
	"unicode"
	"unicode/utf8"
)

// nameSet finds duplicate names in the objects that are open. The names of all
// of them lie in one slice, the innermost object's last.
type nameSet struct {
	all    []seenName
	bases  []int
	arena  []byte
	hashes []hashedName
}

type seenName struct {
	name []byte // unescaped, and folded where case does not count
	at   int
}

type hashedName struct {
	hash  uint64
	index int
}

// fewNames is up to how many names are compared each with each. Above it they
// are sorted by a seeded hash, so that an object of a hundred thousand members
// costs n log n and nobody can choose names that collide.
const fewNames = 16

var nameSeed = maphash.MakeSeed()

func (n *nameSet) open() { n.bases = append(n.bases, len(n.all)) }

// add notes a name of the innermost object.
func (n *nameSet) add(nm name, fold bool) []byte {
	text := nm.raw
	if nm.escaped {
		from := len(n.arena)
		n.arena = appendUnescaped(n.arena, text)
		text = n.arena[from:]
	}
	if fold && !isFolded(text) {
		from := len(n.arena)
		n.arena = appendFolded(n.arena, text)
		text = n.arena[from:]
	}
	n.all = append(n.all, seenName{name: text, at: nm.at})
	return text
}

// close ends the innermost object and returns the offset of a name that
// repeats another one of it, or -1.
func (n *nameSet) close() int {
	base := n.bases[len(n.bases)-1]
	n.bases = n.bases[:len(n.bases)-1]
	names := n.all[base:]
	n.all = n.all[:base]
	if base == 0 {
		n.arena = n.arena[:0]
	}
	if len(names) <= fewNames {
		for i := 1; i < len(names); i++ {
			for j := range i {
				if string(names[i].name) == string(names[j].name) {
					return names[i].at
				}
			}
		}
		return -1
	}
	n.hashes = n.hashes[:0]
	for i := range names {
		n.hashes = append(n.hashes, hashedName{maphash.Bytes(nameSeed, names[i].name), i})
	}
	slices.SortFunc(n.hashes, func(a, b hashedName) int {
		return cmp.Or(cmp.Compare(a.hash, b.hash), cmp.Compare(a.index, b.index))
	})
	for i := 1; i < len(n.hashes); i++ {
		for j := i - 1; j >= 0 && n.hashes[j].hash == n.hashes[i].hash; j-- {
			if string(names[n.hashes[i].index].name) == string(names[n.hashes[j].index].name) {
				return names[n.hashes[i].index].at
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
