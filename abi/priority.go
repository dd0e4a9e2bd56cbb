package abi

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// PriorityHint orders mutations: lower runs first, 0 is the default
// (protocol.md §2). It is one number for both phases, or one for each phase,
// and is written in the form it was read or made in. The zero value is an
// unset hint. Values are comparable with ==.
type PriorityHint struct {
	form              hintForm
	request, response int32
	hasReq, hasResp   bool
}

type hintForm uint8

const (
	hintUnset hintForm = iota
	hintScalar
	hintPerPhase
)

// Priority returns a hint that holds in both phases.
func Priority(n int32) PriorityHint {
	return PriorityHint{form: hintScalar, request: n, response: n}
}

// PhasePriority returns a hint for each phase; nil leaves that phase at 0.
func PhasePriority(request, response *int32) PriorityHint {
	p := PriorityHint{form: hintPerPhase}
	if request != nil {
		p.request, p.hasReq = *request, true
	}
	if response != nil {
		p.response, p.hasResp = *response, true
	}
	return p
}

// For returns the hint for a phase, 0 where none was given.
func (p PriorityHint) For(phase Phase) int32 {
	if phase == Response {
		return p.response
	}
	return p.request
}

// IsSet reports whether a hint was given at all, be it 0.
func (p PriorityHint) IsSet() bool { return p.form != hintUnset }

func (p PriorityHint) isDefault() bool {
	return p.form == hintUnset || p.form == hintScalar && p.request == 0
}

// AppendJSON appends the hint as it was given; an unset one as 0.
func (p PriorityHint) AppendJSON(dst []byte) []byte {
	if p.form != hintPerPhase {
		return strconv.AppendInt(dst, int64(p.request), 10)
	}
	o := openObject(dst)
	if p.hasReq {
		o.int(keyRequest, int64(p.request))
	}
	if p.hasResp {
		o.int(keyResponse, int64(p.response))
	}
	return o.close()
}

// MarshalJSON writes what [PriorityHint.AppendJSON] appends.
func (p PriorityHint) MarshalJSON() ([]byte, error) { return p.AppendJSON(nil), nil }

// UnmarshalJSON reads a hint as [ReadPriorityHint] does.
func (p *PriorityHint) UnmarshalJSON(b []byte) (err error) {
	*p, err = ReadPriorityHint(b)
	return err
}

// ReadPriorityHint reads an int32, or an object with an int32 for "request",
// "response" or both. A number with a fraction, one outside the range of int32
// or anything else is an error. null is an unset hint.
func ReadPriorityHint(raw []byte) (PriorityHint, error) {
	switch kindOf(raw) {
	case 'n':
		return PriorityHint{}, nil
	case '0':
		n, err := readInt32(raw)
		if err != nil {
			return PriorityHint{}, fmt.Errorf("priorityHint: %w", err)
		}
		return Priority(n), nil
	case '{':
	default:
		return PriorityHint{}, errors.New("priorityHint is neither an integer nor an object")
	}
	m, err := readObject(raw)
	if err != nil {
		return PriorityHint{}, fmt.Errorf("priorityHint: %w", err)
	}
	var of [2]*int32
	for i, key := range []string{keyRequest, keyResponse} {
		v, ok := m.get(key)
		if !ok {
			continue
		}
		n, err := readInt32(v)
		if err != nil {
			return PriorityHint{}, fmt.Errorf("priorityHint.%s: %w", key, err)
		}
		of[i] = &n
	}
	return PhasePriority(of[0], of[1]), nil
}

// readInt32 reads a JSON number whose value is an integer in the range of
// int32, however it is spelled (5, 5.0, 5e0). It never builds a number larger
// than its own digits: the exponent is a stranger's.
func readInt32(raw []byte) (int32, error) {
	n, err := readInteger(raw)
	if err != nil {
		return 0, err
	}
	if n < math.MinInt32 || n > math.MaxInt32 {
		return 0, fmt.Errorf("%d is outside the range of a 32-bit integer", n)
	}
	return int32(n), nil
}

func readInteger(raw []byte) (int64, error) {
	if kindOf(raw) != '0' {
		return 0, errors.New("is not a number")
	}
	s := string(raw)
	if n, err := strconv.ParseInt(s, 10, 64); err == nil {
		return n, nil
	}
	mantissa, exponent := s, 0
	if i := strings.IndexAny(s, "eE"); i >= 0 {
		e, err := strconv.Atoi(s[i+1:])
		if err != nil || e > 1000 || e < -1000 {
			return 0, errors.New("is out of range or not an integer")
		}
		mantissa, exponent = s[:i], e
	}
	whole, fraction, _ := strings.Cut(mantissa, ".")
	if len(whole)+len(fraction) > 64 {
		return 0, errors.New("is out of range or not an integer")
	}
	digits := whole + fraction
	scale := exponent - len(fraction)
	for scale < 0 && strings.HasSuffix(digits, "0") && len(digits) > 1 {
		digits = digits[:len(digits)-1]
		scale++
	}
	if strings.Trim(digits, "-0") == "" {
		return 0, nil
	}
	if scale < 0 {
		return 0, errors.New("is not an integer")
	}
	if scale > 19 {
		return 0, errors.New("is out of range")
	}
	n, err := strconv.ParseInt(digits+strings.Repeat("0", scale), 10, 64)
	if err != nil {
		return 0, errors.New("is out of range or not an integer")
	}
	return n, nil
}
