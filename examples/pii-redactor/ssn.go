package main

// ssnEnd returns where the US social security number at s[i] ends, 0 when there
// is none: 123-45-6789 or 123 45 6789, in a range that is given out. Nine
// digits in one piece are anything.
func ssnEnd(s string, i int) int {
	switch at(s, i-1) {
	case '-', '.', '/':
		return 0 // the tail of something longer
	}
	separator := at(s, i+3)
	if digitsAt(s, i, 3) != 3 || separator != '-' && separator != ' ' ||
		digitsAt(s, i+4, 2) != 2 || at(s, i+6) != separator ||
		digitsAt(s, i+7, 4) != 4 {
		return 0
	}
	end := i + 11
	if !endsNumber(s, end) || at(s, end) == '-' || at(s, end) == '/' {
		return 0
	}
	area, group, serial := s[i:i+3], s[i+4:i+6], s[i+7:end]
	if area == "000" || area == "666" || area[0] == '9' || group == "00" || serial == "0000" {
		return 0
	}
	return end
}
