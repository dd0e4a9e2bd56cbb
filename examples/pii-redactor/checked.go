package main

// findChecked finds the numbers that carry a check of their own: IBANs, payment
// cards, and social security numbers, of which whole ranges are not given out.
// It looks at no more than maxIBAN characters and their spaces from each place.
func findChecked(s string, wanted *[kinds]bool) (match, bool) {
	for i := 0; i < len(s); i++ {
		if !isWord(s[i]) || wordBefore(s, i) {
			continue
		}
		if wanted[iban] && isLetter(s[i]) {
			if to := ibanEnd(s, i); to > 0 {
				return match{i, to, iban}, true
			}
		}
		if !isDigit(s[i]) {
			continue
		}
		if wanted[card] {
			if to := cardEnd(s, i); to > 0 {
				return match{i, to, card}, true
			}
		}
		if wanted[ssn] {
			if to := ssnEnd(s, i); to > 0 {
				return match{i, to, ssn}, true
			}
		}
	}
	return match{}, false
}

// endsNumber reports whether a number can end before s[i]: no letter or digit
// follows, and no decimal fraction.
func endsNumber(s string, i int) bool {
	c := at(s, i)
	return !isWord(c) && (c != '.' || !isDigit(at(s, i+1)))
}
