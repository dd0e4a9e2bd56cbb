package main

import (
	"strings"

	"github.com/weir-mcp/weir/guest"
)

// secret is what was found, without what it is.
type secret struct {
	kind     string // as an operator names it
	what     string // as a message names it, with its article
	severity guest.Severity
}

// findSecrets calls found for each secret in s. The name is that of the member
// that s is the value of: some secrets are known by it alone. From each place
// it looks at a bounded number of bytes, or at a run that no other place makes
// it look at again, so that it is linear.
func findSecrets(s, name string, found func(secret)) {
	aws := awsSecrets{named: isAWSSecretName(name)}
	for i := 0; i < len(s); i++ {
		c := s[i]
		if c == '-' {
			if to := privateKeyAt(s, i); to > 0 {
				found(secret{"private-key", "a private key", guest.SeverityError})
				i = to - 1
			}
			continue
		}
		if !alnum[c] || i > 0 && alnum[s[i-1]] && !isEscape(s, i-2) {
			continue // not the beginning of a word
		}
		if aws.at(s, i) {
			found(secret{"aws", "an AWS secret access key", guest.SeverityError})
		}
		hit, to := tokenAt(s, i)
		switch {
		case to > 0:
			if hit.kind == "aws" && aws.mark(i) {
				found(secret{"aws", "an AWS secret access key", guest.SeverityError})
			}
		case c == 'e':
			hit, to = jwtAt(s, i)
		case digit(c):
			hit, to = telegramAt(s, i)
		}
		if to > 0 {
			found(hit)
			i = to - 1
		}
	}
}

// isEscape reports whether \n, \r or \t stands at s[i]: in a string that holds
// JSON itself, its letter is not the beginning of a word's.
func isEscape(s string, i int) bool {
	return i >= 0 && s[i] == '\\' && i+1 < len(s) && strings.IndexByte("nrtbf", s[i+1]) >= 0
}

func digit(c byte) bool { return c >= '0' && c <= '9' }

// telegramAt finds a bot's token: 8 to 10 digits, a colon, AA and 33 more.
func telegramAt(s string, i int) (secret, int) {
	n := 0
	for n <= 10 && i+n < len(s) && digit(s[i+n]) {
		n++
	}
	body := i + n + 1
	if n < 8 || n > 10 || !strings.HasPrefix(s[i+n:], ":AA") || base64url.run(s[body:], 36) != 35 || varied(s[body:body+35]) < distinct {
		return secret{}, 0
	}
	return secret{"telegram", "a Telegram bot token", guest.SeverityError}, body + 35
}

// minBlob is the shortest "data" that is taken for bytes of an image, a sound
// or a file.
const minBlob = 64

// isBlob reports whether a string is base64 in a member where MCP puts it. What
// looks like a key in there is chance.
func isBlob(name, s string) bool {
	return (name == "data" || name == "blob") && len(s) >= minBlob && len(s)%4 == 0 && base64.run(s, len(s)) == len(s)
}
