// Package redact is the job that all guests of the benchmark do, in Go: replace
// what looks like an e-mail address in the strings of a JSON document, member
// names excepted, and leave every other byte as it was. The Rust and the C guest
// are this code in their languages.
package redact

// Mark stands in place of an address.
const Mark = "[email]"

// Answer reads the frame of a call (abi.md) and returns the frame of the answer.
// The host has checked that the frame is JSON.
func Answer(frame []byte) []byte {
	const head, tail = `{"result":{"modified":true,"payload":`, `}}`
	doc := payload(frame)
	// An address has six bytes or more and the mark seven.
	out := make([]byte, 0, len(head)+len(doc)+len(doc)/6+len(tail))
	out, found := Append(append(out, head...), doc)
	if found == 0 {
		return []byte(`{"result":{"modified":false}}`)
	}
	return append(out, tail...)
}

// payload finds the member "payload" of the outermost object.
func payload(frame []byte) []byte {
	depth := 0
	for i := 0; i < len(frame); i++ {
		switch frame[i] {
		case '{', '[':
			depth++
		case '}', ']':
			depth--
		case '"':
			from := i
			i = stringEnd(frame, i)
			if depth == 1 && frame[i+1] == ':' && string(frame[from:i+1]) == `"payload"` {
				return value(frame[i+2:])
			}
		}
	}
	return nil
}

// value returns the array or object that b begins with.
func value(b []byte) []byte {
	depth := 0
	for i := 0; i < len(b); i++ {
		switch b[i] {
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth == 0 {
				return b[:i+1]
			}
		case '"':
			i = stringEnd(b, i)
		}
	}
	return nil
}

// stringEnd returns where the string that begins at b[i] has its last quote.
func stringEnd(b []byte, i int) int {
	for i++; b[i] != '"'; i++ {
		if b[i] == '\\' {
			i++
		}
	}
	return i
}

// Append appends the redacted document to dst and says how many addresses it
// replaced. Doc must be valid JSON.
func Append(dst, doc []byte) (_ []byte, found int) {
	done := 0 // doc[:done] is in dst
	for i := 0; i < len(doc); i++ {
		if doc[i] != '"' {
			continue
		}
		from := i + 1
		i = stringEnd(doc, i)
		next := i + 1
		for next < len(doc) && isSpace(doc[next]) {
			next++
		}
		if next == len(doc) || doc[next] != ':' {
			var n int
			dst, done, n = scan(dst, doc[:i], done, from, true)
			found += n
		}
	}
	return append(dst, doc[done:]...), found
}

// AppendText does the same with a text that is not spelled in JSON.
func AppendText(dst []byte, text string) (_ []byte, found int) {
	b := []byte(text)
	dst, done, found := scan(dst, b, 0, 0, false)
	return append(dst, b[done:]...), found
}

// scan looks for addresses in b[i:] and appends what stands before and between
// them, from b[done:] on, to dst. It returns where it is done.
func scan(dst, b []byte, done, i int, escaped bool) (_ []byte, _, found int) {
	floor := i // what stands before it is no part of an address
	for i < len(b) {
		switch {
		case b[i] == '\\' && escaped:
			i += 2
			if b[i-1] == 'u' {
				i += 4
			}
			floor = i
			continue
		case b[i] == '@':
			from, to := i, domainEnd(b, i+1)
			for from > floor && isLocal(b[from-1]) {
				from--
			}
			if from < i && to > 0 {
				dst = append(append(dst, b[done:from]...), Mark...)
				done, floor, i = to, to, to
				found++
				continue
			}
		}
		i++
	}
	return dst, done, found
}

// domainEnd returns where the domain name at b[i] ends, 0 when there is none:
// labels with a dot between them, the last one of two or more letters.
func domainEnd(b []byte, i int) int {
	from := i
	for i < len(b) && isDomain(b[i]) {
		i++
	}
	for i > from && !isLetter(b[i-1]) {
		i--
	}
	dot := i
	for dot > from && isLetter(b[dot-1]) {
		dot--
	}
	if i-dot < 2 || dot-from < 2 || b[dot-1] != '.' {
		return 0
	}
	return i
}

func isSpace(c byte) bool { return c == ' ' || c == '\n' || c == '\r' || c == '\t' }

func isLetter(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' }

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

func isDomain(c byte) bool { return isLetter(c) || isDigit(c) || c == '.' || c == '-' }

func isLocal(c byte) bool { return isDomain(c) || c == '_' || c == '+' || c == '%' }
