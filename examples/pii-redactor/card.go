package main

// The digits of payment card numbers (ISO/IEC 7812).
const (
	minCard = 13
	maxCard = 19
)

// cardEnd returns where the payment card number at s[i] ends, 0 when there is
// none: 13 to 19 digits that pass Luhn's check and begin as an issuer's do, in
// one piece or in groups of four or more with one kind of space or dash between
// them. Only the last group may be shorter.
func cardEnd(s string, i int) int {
	if at(s, i-1) == '.' && isDigit(at(s, i-2)) || s[i] < '2' || s[i] > '6' {
		return 0 // a fraction, or no issuer's
	}
	minDigits := minCard
	if at(s, i-1) == '+' {
		minDigits = maxPhoneDigits + 1 // what is shorter is a phone number
	}
	var digits [maxCard]byte
	n, end := 0, 0
	var separator byte
	for {
		group := digitsAt(s, i, maxCard-n)
		if group == 0 || n+group > maxCard {
			return end
		}
		n += copy(digits[n:], s[i:i+group])
		i += group
		if n >= minDigits && endsNumber(s, i) && isIssuer(digits[:n]) && luhn(digits[:n]) {
			end = i
		}
		c := at(s, i)
		if group < 4 || c != ' ' && c != '-' || separator != 0 && c != separator {
			return end
		}
		separator = c
		i++
	}
}

// luhn is the check of ISO/IEC 7812-1 Annex B.
func luhn(digits []byte) bool {
	sum := 0
	for i, c := range digits {
		d := int(c - '0')
		if (len(digits)-i)%2 == 0 {
			if d *= 2; d > 9 {
				d -= 9
			}
		}
		sum += d
	}
	return sum%10 == 0
}

// isIssuer reports whether a number has the first digits and the length of a
// card network's: Visa, Mastercard, American Express, Diners Club, Discover,
// JCB, UnionPay, Maestro, Mir.
func isIssuer(digits []byte) bool {
	four := 0
	for _, c := range digits[:4] {
		four = four*10 + int(c-'0')
	}
	n := len(digits)
	within := func(low, high int) bool { return four >= low && four <= high }
	switch {
	case within(4000, 4999):
		return n == 13 || n == 16 || n == 19
	case within(5100, 5599), within(2221, 2720):
		return n == 16
	case within(3400, 3499), within(3700, 3799):
		return n == 15
	case within(3000, 3059), within(3600, 3699), within(3800, 3999):
		return n >= 14
	case within(3528, 3589), within(6011, 6011), within(6440, 6599), within(6200, 6299), within(2200, 2204):
		return n >= 16
	case within(5000, 5099), within(5600, 5899), within(6000, 6999):
		return true
	}
	return false
}
