package wire

// WithParams gives a new message in which exactly the bytes of params are p,
// a JSON object. A message that has none gets them as its last member
// (protocol.md §3). p is not checked; [Strict] does. It is nil unless the message
// is a request or a notification: there is nothing that could be passed on.
func (m Message) WithParams(p []byte) []byte {
	if m.Kind != Request && m.Kind != Notification {
		return nil
	}
	if m.Params == nil {
		const key = `,"params":`
		out := make([]byte, 0, len(m.Raw)+len(key)+len(p))
		out = append(out, m.Raw[:len(m.Raw)-1]...)
		out = append(out, key...)
		out = append(out, p...)
		return append(out, '}')
	}
	return m.splice(m.paramsAt, len(m.Params), p)
}

// WithResult gives a new message in which exactly the bytes of the result are
// r, a JSON value, which is not checked. It is nil unless the message is a
// response: an error never becomes a success.
func (m Message) WithResult(r []byte) []byte {
	if m.Kind != Response {
		return nil
	}
	return m.splice(m.resultAt, len(m.Result), r)
}

// WithID gives a new message in which exactly the bytes of the id are raw, a
// JSON string or number, which is not checked. It is nil when the message has no
// id.
func (m Message) WithID(raw []byte) []byte {
	if m.ID.IsZero() {
		return nil
	}
	return m.splice(m.idAt, len(m.ID.raw), raw)
}

func (m Message) splice(at, length int, with []byte) []byte {
	out := make([]byte, 0, len(m.Raw)-length+len(with))
	out = append(out, m.Raw[:at]...)
	out = append(out, with...)
	return append(out, m.Raw[at+length:]...)
}
