package main

import "strings"

// awsReach is how many bytes may lie between an AWS secret access key and what
// gives it away.
const awsReach = 256

// awsSecrets finds AWS secret access keys. They are 40 characters of base64 and
// nothing else, as is a lot; what makes one is an access key id, or the words
// "secret" and "key", near by, or the name of its member.
type awsSecrets struct {
	named     bool
	marked    bool
	markAt    int // the last place of an id or of such a word
	candidate bool
	keyAt     int // the last run of 40 that was not reported yet
	until     int // where the run ends that was looked at last
}

// at looks at the word at s[i] and reports whether a key is there.
func (a *awsSecrets) at(s string, i int) bool {
	if saysSecretKey(s, i) {
		a.marked, a.markAt = true, i
	}
	if i < a.until {
		return false
	}
	n := awsKeyChars.run(s[i:], awsKeyLen+1)
	if n > awsKeyLen {
		a.until = i + awsKeyChars.run(s[i:], len(s))
		return false
	}
	a.until = i + n
	if n != awsKeyLen || i > 0 && awsKeyChars[s[i-1]] && !isEscape(s, i-2) || !looksRandom(s[i:i+n]) {
		return false
	}
	if a.named || a.marked && i-a.markAt <= awsReach {
		return true
	}
	a.candidate, a.keyAt = true, i
	return false
}

// mark notes an access key id at i and reports whether a key stands before it.
func (a *awsSecrets) mark(i int) bool {
	a.marked, a.markAt = true, i
	found := a.candidate && i-a.keyAt <= awsReach
	a.candidate = false
	return found
}

const awsKeyLen = 40

var awsKeyChars = setOf(digits + capitals + smalls + "+/")

// looksRandom tells a key from a digest in hex and from a path.
func looksRandom(s string) bool {
	var hasDigit, hasCapital, hasSmall bool
	for i := range len(s) {
		switch c := s[i]; {
		case digit(c):
			hasDigit = true
		case c >= 'A' && c <= 'Z':
			hasCapital = true
		case c >= 'a' && c <= 'z':
			hasSmall = true
		}
	}
	return hasDigit && hasCapital && hasSmall
}

// saysSecretKey reports whether the word at s[i] names an AWS secret key, in
// any of the ways that configuration files spell it.
func saysSecretKey(s string, i int) bool {
	switch s[i] | 0x20 {
	case 'a', 's':
		return isAWSSecretName(wordAt(s, i))
	}
	return false
}

func wordAt(s string, i int) string {
	n := base64url.run(s[i:], 32)
	return s[i : i+n]
}

// isAWSSecretName reports whether a name is secret_access_key, SecretAccessKey,
// aws-secret-key or the like.
func isAWSSecretName(name string) bool {
	if len(name) < len("secretkey") || len(name) > len("aws_secret_access_key") {
		return false
	}
	plain := strings.ToLower(strings.NewReplacer("_", "", "-", "").Replace(name))
	plain = strings.TrimPrefix(plain, "aws")
	return plain == "secretaccesskey" || plain == "secretkey"
}
