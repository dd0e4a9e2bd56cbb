package main

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// findEmail finds local@domain.tld, in letters of any script. A run of local
// characters is looked at for the "@" that ends it alone, and one of domain
// characters for the "@" before it: neither holds an "@".
func findEmail(s string, wanted *[kinds]bool) (match, bool) {
	if !wanted[email] {
		return match{}, false
	}
	for i := strings.IndexByte(s, '@'); i >= 0; {
		if from := localStart(s, i); from < i {
			if to := domainEnd(s, i+1); to > 0 && !isImageName(s[i+1:to]) {
				return match{from, to, email}, true
			}
		}
		next := strings.IndexByte(s[i+1:], '@')
		if next < 0 {
			break
		}
		i += 1 + next
	}
	return match{}, false
}

// localStart returns where the local part before s[at] begins, at itself when
// there is none.
func localStart(s string, at int) int {
	start, i := at, at // start is where it may begin: at a letter, a digit or "_"
	for i > 0 {
		r, n := utf8.DecodeLastRuneInString(s[:i])
		switch {
		case isNameRune(r) || r == '_':
			start = i - n
		case r == '.', r == '-', r == '+', r == '%', r == '\'':
		default:
			if r == '\\' && start == i && isEscape(s, i-1) {
				return afterEscape(s, i+1, at)
			}
			return start
		}
		i -= n
	}
	return start
}

// afterEscape returns where a local part begins that follows an escape.
func afterEscape(s string, i, at int) int {
	for i < at {
		r, n := utf8.DecodeRuneInString(s[i:])
		if isNameRune(r) || r == '_' {
			return i
		}
		i += n
	}
	return at
}

// domainEnd returns where the longest domain name at s[i] ends, 0 when there is
// none. Its last label is of two or more letters.
func domainEnd(s string, i int) int {
	end, label, letters, dots := 0, 0, true, 0
	for {
		r, n := utf8.DecodeRuneInString(s[i:])
		name := n > 0 && isNameRune(r)
		if !name && dots > 0 && label >= 2 && letters {
			end = i
		}
		switch {
		case name:
			label++
			letters = letters && !unicode.IsDigit(r)
		case n > 0 && r == '-' && label > 0:
			label++
			letters = false
		case n > 0 && r == '.' && label > 0:
			dots++
			label, letters = 0, true
		default:
			return end
		}
		i += n
	}
}

func isNameRune(r rune) bool {
	if r < utf8.RuneSelf {
		return isWord(byte(r))
	}
	return r != utf8.RuneError && (unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.IsMark(r))
}

// isImageName knows the one kind of file names that look like addresses:
// icon@2x.png.
func isImageName(domain string) bool {
	return len(domain) >= 5 && isDigit(domain[0]) && domain[1] == 'x' && domain[2] == '.'
}
