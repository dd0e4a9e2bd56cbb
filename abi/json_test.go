package abi

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestScalarsAreTheNumbersAndLiteralsOfJSON(t *testing.T) {
	const alphabet = "019-+.eE"
	var try func(b []byte)
	try = func(b []byte) {
		if json.Valid(b) != isScalar(b) {
			require.Failf(t, "not as json.Valid", "%s", b)
		}
		if len(b) == 5 {
			return
		}
		for i := range len(alphabet) {
			try(append(b[:len(b):len(b)], alphabet[i]))
		}
	}
	try(nil)
	for _, s := range []string{"true", "false", "null", "True", "nul", "nulll", "NaN", "-", "1e400", "123456789012345678901234567890", "1/2", "1:2", "\xff", "１"} {
		require.Equal(t, json.Valid([]byte(s)), isScalar([]byte(s)), s)
	}
}

// Wherever a byte stands in a string, eight are looked at as one is.
func TestStringsEndWhereTheyEnd(t *testing.T) {
	plain := func(b []byte, i int) int {
		for ; i < len(b) && b[i] != '"' && b[i] != '\\' && b[i] >= 0x20; i++ {
		}
		return i
	}
	for _, fill := range []byte{'a', '!', '#', '[', 0x80, 0xdc, 0xff} {
		for length := range 18 {
			for at := range length {
				for c := range 256 {
					b := bytes.Repeat([]byte{fill}, length)
					b[at] = byte(c)
					for _, from := range []int{0, at, at + 1} {
						if plain(b, from) != special(b, from) {
							require.Failf(t, "not as byte by byte", "%q from %d", b, from)
						}
					}
				}
			}
		}
	}
	for _, test := range []struct {
		in string
		ok bool
	}{
		{`""`, true},
		{`"\""`, true},
		{`"seven..\" and more"`, true},
		{`"ends in a backslash\\"`, true},
		{`"`, false},
		{`"no end`, false},
		{`"no end\`, false},
		{`"no end\"`, false},
		{"\"a line\nbreak\"", false},
		{`none`, false},
		{``, false},
	} {
		for _, after := range []string{"", " ", `,"next":"string"`} {
			if !test.ok && strings.Contains(after, `"`) {
				continue
			}
			s := scanner{b: []byte(test.in + after)}
			require.Equal(t, test.ok, s.str(), test.in)
			if test.ok {
				require.Equal(t, len(test.in), s.i, test.in)
			}
		}
	}
}
