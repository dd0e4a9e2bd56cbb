package wire

// Peek tells, as far as it can, what message b was going to be and its id: for
// answering the sender of something that is refused or too large. It checks
// nothing, and nothing may be decided on it but whom to answer. The id is a
// copy; it is zero when there is none, when it is no string, number or null, is
// longer than 1 KiB, or when there are two. The kind is [Unknown] when b
// contradicts itself, or ends too early to tell a request from a notification.
func Peek(b []byte) (Kind, ID) {
	var s Skimmer
	s.Feed(b)
	return s.Found()
}

// Skimmer is [Peek] for text that comes in pieces: one that is too large to be
// kept and is dropped as it streams. The zero value is ready. It remembers no
// more than one name and one id, and is for one goroutine.
type Skimmer struct {
	depth  int
	quoted bool // inside a string
	escape bool // after a backslash in it
	stage  stage
	// word collects the name of the member, or the value of id.
	word    []byte
	tooLong bool

	id                         []byte
	ids                        int
	method, result, err, ended bool
}

// stage is what is being read of the envelope, at depth 1.
type stage uint8

const (
	awaitObject stage = iota
	awaitName
	inName
	awaitColon
	inValue
	inID
	given // not an envelope, or past it
)

const skimLimit = 1 << 10

// Feed takes the next piece.
func (s *Skimmer) Feed(b []byte) {
	for i := 0; i < len(b) && s.stage != given; i++ {
		c := b[i]
		if s.quoted {
			if s.stage == inName || s.stage == inID {
				s.collect(c)
			} else if !s.escape {
				for c != '"' && c != '\\' && i+1 < len(b) {
					i++
					c = b[i]
				}
			}
			switch {
			case s.escape:
				s.escape = false
			case c == '\\':
				s.escape = true
			case c == '"':
				s.quoted = false
				if s.stage == inName {
					s.stage = awaitColon
				}
			}
			continue
		}
		s.token(c)
	}
}

// token takes one byte outside strings.
func (s *Skimmer) token(c byte) {
	if isSpace(c) {
		return
	}
	if s.depth > 1 {
		s.nested(c)
		return
	}
	switch {
	case s.stage == awaitObject:
		if c != '{' {
			s.stage = given
			return
		}
		s.depth, s.stage = 1, awaitName
	case c == '}':
		s.value()
		s.depth, s.ended, s.stage = 0, true, given
	case c == ',':
		s.value()
		s.stage = awaitName
	case s.stage == awaitName && c == '"':
		s.word, s.tooLong = s.word[:0], false
		s.stage, s.quoted = inName, true
		s.collect(c)
	case s.stage == awaitColon && c == ':':
		s.member()
	case s.stage == inID || s.stage == inValue:
		s.quoted = c == '"'
		if s.stage == inID {
			s.collect(c)
		}
		if c == '{' || c == '[' {
			s.depth++
		}
	}
}

func (s *Skimmer) nested(c byte) {
	switch c {
	case '"':
		s.quoted = true
		if s.stage == inID {
			s.collect(c)
		}
	case '{', '[':
		s.depth++
	case '}', ']':
		s.depth--
	}
}

func (s *Skimmer) collect(c byte) {
	if len(s.word) == skimLimit {
		s.tooLong = true
		return
	}
	s.word = append(s.word, c)
}

// member takes the name that has been collected.
func (s *Skimmer) member() {
	s.stage = inValue
	text, ok := Unquote(s.word)
	if !ok || s.tooLong {
		return
	}
	switch text {
	case "id":
		s.word, s.tooLong = s.word[:0], false
		s.stage = inID
	case "method":
		s.method = true
	case "result":
		s.result = true
	case "error":
		s.err = true
	}
}

// value ends a value of the envelope.
func (s *Skimmer) value() {
	if s.stage != inID {
		return
	}
	s.ids++
	s.id = nil
	if id, ok := ParseID(s.word); ok && !s.tooLong && s.ids == 1 {
		s.id = id.Clone().Raw()
	}
}

// Found tells what [Peek] would of all that was fed.
func (s *Skimmer) Found() (Kind, ID) {
	id := ID{s.id}
	kinds := 0
	kind := Unknown
	if s.method {
		kinds++
		switch {
		case s.ids > 0:
			kind = Request
		case s.ended:
			kind = Notification
		}
	}
	if s.result {
		kinds++
		kind = Response
	}
	if s.err {
		kinds++
		kind = Failure
	}
	if kinds > 1 {
		kind = Unknown
	}
	return kind, id
}
