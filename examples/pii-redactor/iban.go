package main

// maxIBAN is the most characters an IBAN has (ISO 13616).
const maxIBAN = 34

// ibanEnd returns where the IBAN at s[i] ends, 0 when there is none. It may be
// written in one piece or in groups of four with one kind of space or dash
// between them, in capitals or not.
func ibanEnd(s string, i int) int {
	if !isLetter(at(s, i+1)) || !isDigit(at(s, i+2)) || !isDigit(at(s, i+3)) {
		return 0
	}
	length := ibanLength(s[i], s[i+1])
	if length == 0 {
		return 0
	}
	separator := at(s, i+4)
	if separator != ' ' && separator != '-' {
		separator = 0
	}
	var digits [maxIBAN]byte
	for n := range length {
		if n > 0 && n%4 == 0 && separator != 0 {
			if at(s, i) != separator {
				return 0
			}
			i++
		}
		if digits[n] = at(s, i); !isWord(digits[n]) {
			return 0
		}
		i++
	}
	if isWord(at(s, i)) || mod97(digits[:length]) != 1 {
		return 0
	}
	return i
}

// mod97 is the check of ISO 7064 over an IBAN: its first four characters moved
// to the end, letters read as 10 to 35, modulo 97. It is 1 for a valid one.
func mod97(account []byte) int {
	rest := 0
	for i := range account {
		c := account[(i+4)%len(account)]
		if isDigit(c) {
			rest = (rest*10 + int(c-'0')) % 97
		} else {
			rest = (rest*100 + int(c|0x20-'a') + 10) % 97
		}
	}
	return rest
}

// ibanLength returns how many characters the IBANs of a country have, 0 for a
// country without any.
func ibanLength(a, b byte) int { return ibanLengths[[2]byte{a &^ 0x20, b &^ 0x20}] }

// ibanLengths is the SWIFT IBAN registry.
var ibanLengths = map[[2]byte]int{
	{'A', 'D'}: 24, {'A', 'E'}: 23, {'A', 'L'}: 28, {'A', 'T'}: 20, {'A', 'Z'}: 28, {'B', 'A'}: 20, {'B', 'E'}: 16,
	{'B', 'G'}: 22, {'B', 'H'}: 22, {'B', 'I'}: 27, {'B', 'R'}: 29, {'B', 'Y'}: 28, {'C', 'H'}: 21, {'C', 'R'}: 22,
	{'C', 'Y'}: 28, {'C', 'Z'}: 24, {'D', 'E'}: 22, {'D', 'J'}: 27, {'D', 'K'}: 18, {'D', 'O'}: 28, {'E', 'E'}: 20,
	{'E', 'G'}: 29, {'E', 'S'}: 24, {'F', 'I'}: 18, {'F', 'K'}: 18, {'F', 'O'}: 18, {'F', 'R'}: 27, {'G', 'B'}: 22,
	{'G', 'E'}: 22, {'G', 'I'}: 23, {'G', 'L'}: 18, {'G', 'R'}: 27, {'G', 'T'}: 28, {'H', 'N'}: 28, {'H', 'R'}: 21,
	{'H', 'U'}: 28, {'I', 'E'}: 22, {'I', 'L'}: 23, {'I', 'Q'}: 23, {'I', 'S'}: 26, {'I', 'T'}: 27, {'J', 'O'}: 30,
	{'K', 'W'}: 30, {'K', 'Z'}: 20, {'L', 'B'}: 28, {'L', 'C'}: 32, {'L', 'I'}: 21, {'L', 'T'}: 20, {'L', 'U'}: 20,
	{'L', 'V'}: 21, {'L', 'Y'}: 25, {'M', 'C'}: 27, {'M', 'D'}: 24, {'M', 'E'}: 22, {'M', 'K'}: 19, {'M', 'N'}: 20,
	{'M', 'R'}: 27, {'M', 'T'}: 31, {'M', 'U'}: 30, {'N', 'I'}: 28, {'N', 'L'}: 18, {'N', 'O'}: 15, {'O', 'M'}: 23,
	{'P', 'K'}: 24, {'P', 'L'}: 28, {'P', 'S'}: 29, {'P', 'T'}: 25, {'Q', 'A'}: 29, {'R', 'O'}: 24, {'R', 'S'}: 22,
	{'R', 'U'}: 33, {'S', 'A'}: 24, {'S', 'C'}: 31, {'S', 'D'}: 18, {'S', 'E'}: 24, {'S', 'I'}: 19, {'S', 'K'}: 24,
	{'S', 'M'}: 27, {'S', 'O'}: 23, {'S', 'T'}: 25, {'S', 'V'}: 28, {'T', 'L'}: 23, {'T', 'N'}: 24, {'T', 'R'}: 26,
	{'U', 'A'}: 29, {'V', 'A'}: 22, {'V', 'G'}: 24, {'X', 'K'}: 20, {'Y', 'E'}: 30,
}
