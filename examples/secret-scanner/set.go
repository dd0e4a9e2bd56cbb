package main

// set is a set of bytes.
type set [256]bool

const (
	digits   = "0123456789"
	capitals = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
	smalls   = "abcdefghijklmnopqrstuvwxyz"
)

var (
	alnum        = setOf(digits + capitals + smalls)
	upper        = setOf(digits + capitals)
	word         = setOf(digits + capitals + smalls + "_")
	hex          = setOf(digits + "abcdef")
	base64       = setOf(digits + capitals + smalls + "+/=")
	base64url    = setOf(digits + capitals + smalls + "_-")
	urlEncoded   = setOf(digits + capitals + smalls + "%+/=")
	gitlab       = setOf(digits + capitals + smalls + "_-.")
	sendgrid     = gitlab
	slack        = setOf(digits + capitals + smalls + "-")
	slackRotated = setOf(digits + capitals + smalls + "-.")
	path         = setOf(digits + capitals + smalls + "/")
)

func setOf(chars string) (s set) {
	for i := range len(chars) {
		s[chars[i]] = true
	}
	return s
}

// run returns how many bytes at the beginning of s are in the set, at most max.
func (t *set) run(s string, max int) int {
	n := 0
	for n < len(s) && n < max && t[s[n]] {
		n++
	}
	return n
}
