package wire

// Members calls yield for each member of the object b, in order, until it
// returns false: the name with its escapes resolved, and name (quotes included)
// and value as spelled, aliasing b. Duplicate names are all yielded.
//
// The error is an *[Error] when b is not one JSON object, of which some members
// may have been yielded by then. After yield returned false nothing more is
// read and the error is nil.
func Members(b []byte, yield func(name string, rawName, value []byte) bool) error {
	s := scanner{b: b}
	i := space(b, 0)
	if i >= len(b) || b[i] != '{' {
		s.document()
		s.refuse(i, reasonNoObject)
		return s.verdict()
	}
	i, more := s.first(i)
	for more {
		var n name
		if n, i = s.name(i); i < 0 {
			return s.err
		}
		at := i
		if i = s.value(at); i < 0 {
			return s.err
		}
		end := n.at + len(n.raw) + 2
		if !yield(n.text(), b[n.at:end:end], b[at:i:i]) {
			return nil
		}
		i, more = s.next(i)
	}
	if i >= 0 {
		s.end(i)
	}
	if e := s.verdict(); e != nil {
		return e
	}
	return nil
}

// text is the name with its escapes resolved.
func (n name) text() string {
	if n.escaped {
		return string(appendUnescaped(make([]byte, 0, len(n.raw)), n.raw))
	}
	return string(n.raw)
}

// Elements calls yield for each element of the array b, in order, until it
// returns false. Values are as spelled and alias b. Errors are as for
// [Members].
func Elements(b []byte, yield func(index int, value []byte) bool) error {
	s := scanner{b: b}
	i := space(b, 0)
	if i >= len(b) || b[i] != '[' {
		s.document()
		s.refuse(i, reasonNoArray)
		return s.verdict()
	}
	if i = space(b, i+1); i < len(b) && b[i] == ']' {
		s.end(i + 1)
	} else {
		s.push(i, false)
		for n := 0; ; n++ {
			at := i
			if i = s.value(at); i < 0 {
				return s.err
			}
			if !yield(n, b[at:i:i]) {
				return nil
			}
			if i = space(b, i); i < len(b) && b[i] == ',' {
				i = space(b, i+1)
				continue
			}
			if i < len(b) && b[i] == ']' {
				s.end(i + 1)
			} else {
				s.unexpected(i)
			}
			break
		}
	}
	if e := s.verdict(); e != nil {
		return e
	}
	return nil
}

// Get gives the value, as spelled, of the member that path leads to through
// nested objects: Get(params, "_meta", "progressToken"). An empty path gives b
// without the white space around it. It is false when there is none, or when b
// is not JSON up to there. Of duplicate names it takes the first, so use it
// where [Read] or [Strict] has ruled them out. The value aliases b.
func Get(b []byte, path ...string) ([]byte, bool) {
	from, to, ok := Find(b, path...)
	if !ok {
		return nil, false
	}
	return b[from:to:to], true
}

// Find is [Get] for those who want to replace what they find: the value is
// b[from:to].
func Find(b []byte, path ...string) (from, to int, ok bool) {
	s := scanner{b: b}
	i := space(b, 0)
walk:
	for _, want := range path {
		if i >= len(b) || b[i] != '{' {
			return 0, 0, false
		}
		var more bool
		i, more = s.first(i)
		for more {
			var n name
			if n, i = s.name(i); i < 0 {
				return 0, 0, false
			}
			if n.is(want) {
				continue walk
			}
			if i = s.value(i); i < 0 {
				return 0, 0, false
			}
			i, more = s.next(i)
		}
		return 0, 0, false
	}
	end := s.value(i)
	return i, end, end >= 0
}

func (n name) is(want string) bool {
	if n.escaped {
		return string(appendUnescaped(nil, n.raw)) == want
	}
	return string(n.raw) == want
}
