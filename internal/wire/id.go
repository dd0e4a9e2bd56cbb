package wire

import (
	"bytes"
	"crypto/sha256"
	"strconv"
)

// ID is a request id, kept as spelled. The zero ID means that there is none.
//
// Two ids are the same when they are equal as values: numbers as decimal
// values (1, 1.0 and 1e0 are one id, 9007199254740993 and 9007199254740992 are
// two), strings as the text they stand for, and a number never equals a string
// (protocol.md §6). Compare with [ID.Equal], and use [ID.Key] in maps.
type ID struct{ raw []byte }

// ParseID takes raw, one JSON string or number or null without white space
// around it, as an id. It is false for anything else. The ID aliases raw.
func ParseID(raw []byte) (ID, bool) {
	if len(raw) == 0 {
		return ID{}, false
	}
	s := scanner{b: raw}
	end := -1
	switch c := raw[0]; {
	case c == '"':
		end, _ = s.text(0)
	case c == '-' || c-'0' <= 9:
		end = s.number(0)
	case c == 'n':
		end = s.literal(0, "null")
	}
	if end != len(raw) {
		return ID{}, false
	}
	return ID{raw[:len(raw):len(raw)]}, true
}

// Raw is the id as spelled, or nil when there is none. It may alias the message
// it was read from; do not change it.
func (id ID) Raw() []byte { return id.raw }

// String is the id as spelled, for logs, and empty when there is none.
func (id ID) String() string { return string(id.raw) }

// IsZero says that there is no id.
func (id ID) IsZero() bool { return len(id.raw) == 0 }

// IsNull says that the id is null, which only an error response may have.
func (id ID) IsNull() bool { return len(id.raw) != 0 && id.raw[0] == 'n' }

// Equal says that two ids are equal as values.
func (id ID) Equal(other ID) bool {
	if bytes.Equal(id.raw, other.raw) {
		return true
	}
	if id.IsZero() || other.IsZero() || id.IsNull() || other.IsNull() {
		return false
	}
	a, b := id.raw[0] == '"', other.raw[0] == '"'
	switch {
	case a != b:
		return false
	case a:
		return equalText(id.raw, other.raw)
	default:
		return parseDecimal(id.raw).equal(parseDecimal(other.raw))
	}
}

// Clone is the id in memory of its own, for keeping it longer than the message.
func (id ID) Clone() ID { return ID{bytes.Clone(id.raw)} }

const (
	// plainID is up to how many digits a whole number is its own key.
	plainID = 40
	// longKey is the longest key; a longer one is replaced by its digest, so
	// that a table of ids in flight is bounded by their number alone.
	longKey = 128
)

// Key is a string that two ids share exactly when they are equal as values
// (of ids longer than 128 bytes it holds a SHA-256 digest). It is empty for
// the zero ID, never longer than 128 bytes, and owns its memory.
func (id ID) Key() string {
	switch {
	case len(id.raw) == 0:
		return ""
	case id.raw[0] == 'n':
		return "null"
	case id.raw[0] == '"':
		return stringKey(id.raw)
	default:
		return numberKey(id.raw)
	}
}

// stringKey leads with a quote, which no number does.
func stringKey(raw []byte) string {
	key := raw[:len(raw)-1]
	if bytes.IndexByte(key, '\\') >= 0 {
		key = appendUnescaped(make([]byte, 0, len(raw)), key)
	}
	return boundKey(key)
}

func numberKey(raw []byte) string {
	if isPlainWhole(raw) {
		return string(raw)
	}
	d := parseDecimal(raw)
	if len(d.digits) == 0 {
		return "0"
	}
	key := make([]byte, 0, min(len(d.digits)+24, longKey*2))
	if d.neg {
		key = append(key, '-')
	}
	n := int64(0)
	for _, c := range d.digits {
		if c != '.' {
			key = append(key, c)
			n++
		}
	}
	if n <= d.exp && d.exp <= plainID {
		for ; n < d.exp; n++ {
			key = append(key, '0')
		}
		return string(key)
	}
	key = append(key, 'e')
	return boundKey(strconv.AppendInt(key, d.exp, 10))
}

// isPlainWhole says that raw is a whole number spelled the way numberKey would
// spell it.
func isPlainWhole(raw []byte) bool {
	if raw[0] == '-' {
		raw = raw[1:]
		if raw[0] == '0' {
			return false
		}
	}
	return len(raw) <= plainID && digits(raw, 0) == len(raw)
}

// boundKey leads digests with "#", which no other key does.
func boundKey(key []byte) string {
	if len(key) <= longKey {
		return string(key)
	}
	sum := sha256.Sum256(key)
	return "#" + string(sum[:])
}
