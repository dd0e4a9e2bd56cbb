package main

import "strings"

const (
	pemBegin = "-----BEGIN "
	pemEnd   = "PRIVATE KEY"
	// maxPEMLabel bounds what stands between the two: "RSA ", "OPENSSH ".
	maxPEMLabel = 24
	// minKeyBytes of base64 after the first line make it a key and not a
	// sentence about keys.
	minKeyBytes = 32
	// maxKeyHeaders bounds what may stand between: "Proc-Type: …", "Version: …".
	maxKeyHeaders = 512
)

// privateKeyAt returns where the first line of a private key block at s[i] ends
// and its key begins, 0 when there is none. The block may be of any kind that
// is armoured so (PKCS #1 and #8, SEC 1, OpenSSH, PGP), encrypted or not, and
// its line breaks may be escapes, as in a string of JSON inside a string. One
// whose key is not in the same string is taken for cut in two, and counts.
func privateKeyAt(s string, i int) int {
	rest := s[i:]
	if !strings.HasPrefix(rest, pemBegin) {
		return 0
	}
	rest = rest[len(pemBegin):]
	label := strings.Index(rest[:min(len(rest), maxPEMLabel+len(pemEnd))], pemEnd)
	if label < 0 {
		return 0
	}
	rest = strings.TrimPrefix(rest[label+len(pemEnd):], " BLOCK")
	if !strings.HasPrefix(rest, "-----") {
		return 0
	}
	rest = rest[len("-----"):]
	to := len(s) - len(rest)
	if isKey(rest) {
		return to
	}
	return 0
}

// isKey reports whether key material, or nothing, follows the first line of a
// block.
func isKey(s string) bool {
	nothing, body, end := true, 0, min(len(s), maxKeyHeaders)
	for i := 0; i < end; {
		if n := base64.run(s[i:end], end); n > 0 {
			if body += n; body >= minKeyBytes {
				return true
			}
			nothing = false
			i += n
			continue
		}
		switch c := s[i]; {
		case c == '\n', c == '\r', c == '\t':
			i++
		case isEscape(s, i):
			i += 2
		default:
			// The words of a sentence and of a header make no key together.
			nothing, body = nothing && c == ' ', 0
			i++
		}
	}
	return nothing && end == len(s)
}
