package main

// The digits of phone numbers (ITU-T E.164), the country's code included.
const (
	minPhoneDigits = 8
	maxPhoneDigits = 15
)

// findPhone finds international numbers and, where the way they are written
// says that they are nothing else, national ones. It looks at a bounded number
// of bytes from each place.
func findPhone(s string, wanted *[kinds]bool) (match, bool) {
	if !wanted[phone] {
		return match{}, false
	}
	for i := 0; i < len(s); i++ {
		c := s[i]
		if c != '+' && c != '(' && !isDigit(c) || wordBefore(s, i) {
			continue
		}
		if to := phoneEnd(s, i); to > 0 {
			return match{i, to, phone}, true
		}
	}
	return match{}, false
}

func phoneEnd(s string, i int) int {
	switch c := s[i]; {
	case c == '+':
		return internationalEnd(s, i+1, 0)
	case tailOfNumber(s, i):
		return 0
	case c == '0' && at(s, i+1) == '0':
		return internationalEnd(s, i+2, 1)
	case c == '0', c == '(' && at(s, i+1) == '0':
		return trunkEnd(s, i)
	}
	return northAmericanEnd(s, i)
}

// tailOfNumber reports whether what begins at s[i] is the tail of a date, a
// time, a version, an amount or an identifier.
func tailOfNumber(s string, i int) bool {
	switch at(s, i-1) {
	case '-', '.', '/', '_', '#', '$':
		return true
	case ':':
		return isDigit(at(s, i-2))
	}
	return false
}

// endsPhone is endsNumber, and no date, time or identifier goes on there. What
// it looks ahead at is what tailOfNumber looks back at, so that of two numbers
// side by side neither depends on whether the other was redacted.
func endsPhone(s string, i int) bool {
	switch at(s, i) {
	case '-', '/', '_', ':':
		return !isDigit(at(s, i+1))
	}
	return endsNumber(s, i)
}

// internationalEnd reads a country's code and the number after it, grouped in
// any way with spaces, dashes, dots, slashes and brackets, at least so many
// gaps. The longest that fits counts.
func internationalEnd(s string, i, gaps int) int {
	if c := at(s, i); c < '1' || c > '9' {
		return 0
	}
	n, end := 0, 0
	for {
		group := digitsAt(s, i, maxPhoneDigits-n)
		if n += group; n > maxPhoneDigits {
			return end
		}
		i += group
		if n >= minPhoneDigits && gaps <= 0 && endsNumber(s, i) {
			end = i
		}
		gap := gapAt(s, i)
		if gap == 0 {
			return end
		}
		i += gap
		gaps--
	}
}

// gapAt returns the length of what separates two groups of an international
// number at s[i]: at most three characters, of which one may be a space.
func gapAt(s string, i int) int {
	spaces := 0
	for n := range 4 {
		switch c := at(s, i+n); {
		case isDigit(c):
			return n
		case c == ' ' && spaces == 0:
			spaces++
		case c == '-', c == '.', c == '/', c == '(', c == ')':
		default:
			return 0
		}
	}
	return 0
}

// trunkEnd reads a national number that begins with the trunk prefix 0, as in
// most of the world: 030 1234567, (020) 7946 0958, 06 12 34 56 78,
// 0171/123 45 67. The gap after the area code may be of another kind than the
// others, which are all alike.
func trunkEnd(s string, i int) int {
	bracket := s[i] == '('
	if bracket {
		i++
	}
	n := digitsAt(s, i, 6)
	if n < 2 || n > 6 || at(s, i+1) == '0' {
		return 0
	}
	i += n
	switch c := at(s, i); {
	case bracket:
		if c != ')' {
			return 0
		}
		if i++; at(s, i) == ' ' {
			i++
		}
	case c == ' ', c == '-', c == '/', c == '.':
		i++
	default:
		return 0
	}
	end := 0
	var separator byte
	for {
		group := digitsAt(s, i, 8)
		if n += group; group < 2 || group > 8 || n > 12 {
			return end
		}
		i += group
		if n >= 9 && endsPhone(s, i) {
			end = i
		}
		c := at(s, i)
		if c != ' ' && c != '-' && c != '.' || separator != 0 && c != separator {
			return end
		}
		separator = c
		i++
	}
}

// northAmericanEnd reads 212-555-0123, 212.555.0123, 212 555 0123,
// (212) 555-0123, each with or without a 1 before it. Neither the area code nor
// the exchange begins with 0 or 1 or ends in 11.
func northAmericanEnd(s string, i int) int {
	from := i
	if s[i] == '1' {
		if c := at(s, i+1); c != '-' && c != '.' && c != ' ' {
			return 0
		}
		i += 2
	}
	var separator byte // 0 for any
	bracket := at(s, i) == '('
	if bracket {
		i++
	}
	if !isNorthAmericanCode(s, i) {
		return 0
	}
	i += 3
	switch c := at(s, i); {
	case bracket:
		if c != ')' {
			return 0
		}
		if i++; at(s, i) == ' ' || at(s, i) == '-' {
			i++
		}
	case c == '-', c == '.', c == ' ':
		separator = c
		i++
	default:
		return 0
	}
	if !isNorthAmericanCode(s, i) {
		return 0
	}
	i += 3
	c := at(s, i)
	if c != '-' && c != '.' && c != ' ' || separator != 0 && c != separator || digitsAt(s, i+1, 4) != 4 {
		return 0
	}
	if i += 5; !endsPhone(s, i) {
		return 0
	}
	// Three numbers in a row of a table are no phone number.
	if separator == ' ' && at(s, from-1) == ' ' && isDigit(at(s, from-2)) {
		return 0
	}
	return i
}

func isNorthAmericanCode(s string, i int) bool {
	return digitsAt(s, i, 3) == 3 && s[i] >= '2' && (s[i+1] != '1' || s[i+2] != '1')
}
