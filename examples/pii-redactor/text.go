package main

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

func isLetter(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' }

func isWord(c byte) bool { return isDigit(c) || isLetter(c) }

// at returns s[i], and 0 outside s.
func at(s string, i int) byte {
	if i < 0 || i >= len(s) {
		return 0
	}
	return s[i]
}

// wordBefore reports whether a letter or digit stands right before s[i]. The
// last letter of an escape such as \n is none: in a string that holds JSON
// itself, it is where a line begins.
func wordBefore(s string, i int) bool {
	c := at(s, i-1)
	return isWord(c) && !isEscape(s, i-2)
}

// isEscape reports whether \n, \r, \t, \b or \f stands at s[i].
func isEscape(s string, i int) bool {
	if at(s, i) != '\\' {
		return false
	}
	switch at(s, i+1) {
	case 'n', 'r', 't', 'b', 'f':
		return true
	}
	return false
}

// digitsAt returns how many digits stand at s[i], at most max+1.
func digitsAt(s string, i, max int) int {
	n := 0
	for n <= max && isDigit(at(s, i+n)) {
		n++
	}
	return n
}
