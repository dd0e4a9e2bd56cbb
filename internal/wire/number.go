package wire

// decimal is a JSON number as a value: 0.d1d2d3… x 10^exp, found without
// floats, big numbers or memory of its own.
type decimal struct {
	neg bool
	// digits runs from the first digit that is not zero to the last one; a
	// point may lie between. It is empty for zero, which has no sign.
	digits []byte
	// exp is exact up to maxExp and capped there, either way.
	exp int64
}

// maxExp caps exponents. Numbers of equal digits beyond it count as equal:
// both are far past what any program computes with, and the alternative would
// be arithmetic on numbers as long as the message.
const maxExp = 1_000_000_000_000_000

// parseDecimal reads a valid JSON number.
func parseDecimal(raw []byte) decimal {
	var d decimal
	if raw[0] == '-' {
		d.neg = true
		raw = raw[1:]
	}
	mantissa, explicit := raw, int64(0)
	for i, c := range raw {
		if c|0x20 == 'e' {
			mantissa, explicit = raw[:i], parseExponent(raw[i+1:])
			break
		}
	}
	point, first, last := len(mantissa), -1, -1
	for i, c := range mantissa {
		switch {
		case c == '.':
			point = i
		case c != '0':
			if first < 0 {
				first = i
			}
			last = i
		}
	}
	if first < 0 {
		return decimal{}
	}
	d.digits = mantissa[first : last+1]
	// The value is 0.digits x 10^(digits before the point, counted from first).
	shift := int64(point - first)
	if first > point {
		shift++
	}
	d.exp = max(-maxExp, min(maxExp, explicit+shift))
	return d
}

// parseExponent reads what follows the e, capped well beyond maxExp so that the
// digits of the mantissa cannot bring it back.
func parseExponent(raw []byte) int64 {
	neg := raw[0] == '-'
	if neg || raw[0] == '+' {
		raw = raw[1:]
	}
	e := int64(0)
	for _, c := range raw {
		e = min(4*maxExp, e*10+int64(c-'0'))
	}
	if neg {
		return -e
	}
	return e
}

// equal compares two numbers as values.
func (d decimal) equal(o decimal) bool {
	if d.neg != o.neg || d.exp != o.exp {
		return false
	}
	i, j := 0, 0
	for {
		if i < len(d.digits) && d.digits[i] == '.' {
			i++
		}
		if j < len(o.digits) && o.digits[j] == '.' {
			j++
		}
		if i == len(d.digits) || j == len(o.digits) {
			return i == len(d.digits) && j == len(o.digits)
		}
		if d.digits[i] != o.digits[j] {
			return false
		}
		i++
		j++
	}
}
