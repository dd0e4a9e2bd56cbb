package trust

import (
	"encoding/base64"
	"fmt"
	"strings"
)

// MaxBytes bounds each of the three text forms: more is none of them.
const MaxBytes = 1024

// The first words of the text forms.
const (
	wordPublic    = "weir-public-key-1"
	wordPrivate   = "weir-private-key-1"
	wordSignature = "weir-signature-1"
)

var encoding = base64.StdEncoding.Strict()

// line reads a text form: its first word, then so many fields.
func line(text []byte, what, word string, fields int) ([]string, error) {
	if len(text) > MaxBytes {
		return nil, fmt.Errorf("no %s: it has %d bytes, more than %d", what, len(text), MaxBytes)
	}
	s := strings.TrimSuffix(strings.TrimSuffix(string(text), "\n"), "\r")
	words := strings.Split(s, " ")
	if family, _ := strings.CutSuffix(word, "1"); words[0] != word && strings.HasPrefix(words[0], family) {
		return nil, fmt.Errorf("no %s that this weir reads: it is %.40q and not %q", what, words[0], word)
	}
	if words[0] != word || len(words) != fields+1 {
		return nil, fmt.Errorf("no %s: it must be one line that begins with %q", what, word)
	}
	return words[1:], nil
}

// decode reads exactly so many bytes of base64.
func decode(text, what string, size int) ([]byte, error) {
	// The decoder skips line breaks, which would make two spellings of one value.
	b, err := encoding.DecodeString(text)
	if err != nil || len(b) != size || strings.ContainsAny(text, "\r\n") {
		return nil, fmt.Errorf("no %s: its last word is not base64 of %d bytes", what, size)
	}
	return b, nil
}
