package wire

// Kind says what a message is.
type Kind uint8

// The kinds of message. Unknown is only found in an [Error] or a [TooLong].
const (
	Unknown      Kind = iota
	Request           // method and id
	Notification      // method, no id
	Response          // result and id
	Failure           // error; its id may be null or missing
)

// String is the kind in lower case.
func (k Kind) String() string {
	switch k {
	case Request:
		return "request"
	case Notification:
		return "notification"
	case Response:
		return "response"
	case Failure:
		return "failure"
	default:
		return "unknown"
	}
}

// Message is one JSON-RPC message. All slices alias the bytes it was read from:
// whoever changes those bytes changes the message.
type Message struct {
	Kind Kind
	// Raw is the whole message without the white space around it.
	Raw []byte
	// ID is zero for a notification, and may be zero or null in a failure.
	ID ID
	// Method is the method name with its escapes resolved.
	Method string
	// Params is the params object as spelled, nil when there is none.
	Params []byte
	// Result is the result as spelled, any JSON value, nil when there is none.
	Result []byte
	// Error is the error object as spelled, nil when there is none. Its members
	// are not checked.
	Error []byte

	// Offsets into Raw, meaningful where the slice is not nil.
	idAt, paramsAt, resultAt int
}

// Read reads one JSON-RPC 2.0 message by the rules of protocol.md §6.
//
// The whole text must be one JSON value in UTF-8, checked at full depth, nested
// at most [MaxDepth] deep. The envelope must be an object with jsonrpc "2.0"
// and be exactly one of the kinds. An id is a string or a number; null only in
// a failure. Params is an object: MCP knows no positional params, so an array
// is refused, as is null. Two names of the envelope, or two at the top of
// params, that are equal or differ only in case (Unicode simple folding, after
// unescaping) are refused, and so is a case variant of a name of the envelope
// that weir reads. Deeper duplicates are the matter of [Strict]. Other members
// of the envelope may be there and cross as they are.
//
// The error is an *[Error]; text that is not JSON is refused as such
// ([CodeParse]), whatever else is wrong with it.
func Read(b []byte) (Message, error) {
	s := borrow(b, false)
	defer s.giveBack()
	m := s.message()
	if e := s.verdict(); e != nil {
		e.Kind, e.ID = Peek(b)
		return Message{}, e
	}
	return m, nil
}

// The members of the envelope that weir reads.
type member uint8

const (
	other member = iota
	memberVersion
	memberID
	memberMethod
	memberParams
	memberResult
	memberError
)

func memberOf(name []byte) member {
	switch string(name) {
	case "jsonrpc":
		return memberVersion
	case "id":
		return memberID
	case "method":
		return memberMethod
	case "params":
		return memberParams
	case "result":
		return memberResult
	case "error":
		return memberError
	default:
		return other
	}
}

// message reads the envelope.
func (s *scanner) message() (m Message) {
	start := space(s.b, 0)
	if start >= len(s.b) || s.b[start] != '{' {
		s.document()
		if s.err == nil && s.b[start] == '[' {
			s.refuse(start, reasonBatch)
		} else {
			s.refuse(start, reasonNoObject)
		}
		return m
	}
	s.names.push()
	version, method := false, false
	i, more := s.first(start)
	for more {
		var n name
		if n, i = s.name(i); i < 0 {
			return m
		}
		// Anything spelled like a name that weir reads is one: a folded name
		// that equals one of the six, but is not that one as sent, is a variant.
		known := memberOf(s.names.add(n.at+1, n.at+1+len(n.raw), n.escaped, true))
		if known != other && !s.exact(n, known) {
			s.refuse(n.at, reasonVariant)
		}
		at := i
		if known == memberParams && at < len(s.b) && s.b[at] == '{' {
			i = s.params(at)
		} else {
			i = s.value(at)
		}
		if i < 0 {
			return m
		}
		raw := s.b[at:i:i]
		switch known {
		case memberVersion:
			version = true
			if string(raw) != `"2.0"` {
				if text, _ := Unquote(raw); text != "2.0" {
					s.refuse(at, reasonVersion)
				}
			}
		case memberID:
			if c := raw[0]; c == '"' || c == '-' || c-'0' <= 9 || c == 'n' {
				m.ID, m.idAt = ID{raw}, at-start
			} else {
				s.refuse(at, reasonID)
			}
		case memberMethod:
			if m.Method, method = Unquote(raw); !method {
				s.refuse(at, reasonMethod)
			}
		case memberParams:
			m.Params, m.paramsAt = raw, at-start
			if raw[0] != '{' {
				s.refuse(at, reasonParams)
			}
		case memberResult:
			m.Result, m.resultAt = raw, at-start
		case memberError:
			m.Error = raw
			if raw[0] != '{' {
				s.refuse(at, reasonErrorObject)
			}
		}
		i, more = s.next(i)
	}
	if i < 0 {
		return m
	}
	if at := s.names.pop(); at >= 0 {
		s.refuse(at, reasonFold)
	}
	m.Raw = s.b[start:i:i]
	s.end(i)
	if !version {
		s.refuse(start, reasonVersion)
	}
	s.classify(&m, method, start)
	return m
}

// exact says that the name as sent, escapes resolved, is the known one and not
// a variant of it.
func (s *scanner) exact(n name, known member) bool {
	if !n.escaped {
		return memberOf(n.raw) == known
	}
	return memberOf(appendUnescaped(nil, n.raw)) == known
}

// params reads the params object, whose own names must be distinct.
func (s *scanner) params(i int) int {
	s.names.push()
	i, more := s.first(i)
	for more {
		lo := i + 1
		hi, escaped, at := s.label(i)
		if at < 0 {
			return at
		}
		s.names.add(lo, hi, escaped, true)
		if i = s.value(at); i < 0 {
			return i
		}
		i, more = s.next(i)
	}
	if at := s.names.pop(); at >= 0 {
		s.refuse(at, reasonFold)
	}
	return i
}

// classify decides the kind, or why there is none.
func (s *scanner) classify(m *Message, method bool, start int) {
	switch {
	case m.Result != nil && m.Error != nil:
		s.refuse(start, reasonBoth)
	case method && (m.Result != nil || m.Error != nil):
		s.refuse(start, reasonMixed)
	case method && m.ID.IsZero():
		m.Kind = Notification
	case method && m.ID.IsNull():
		s.refuse(start+m.idAt, reasonNullID)
	case method:
		m.Kind = Request
	case m.Result == nil && m.Error == nil:
		s.refuse(start, reasonNothing)
	case m.Params != nil:
		s.refuse(start+m.paramsAt, reasonStray)
	case m.Error != nil:
		m.Kind = Failure
	case m.ID.IsZero():
		s.refuse(start, reasonNoID)
	case m.ID.IsNull():
		s.refuse(start+m.idAt, reasonNullID)
	default:
		m.Kind = Response
	}
}
