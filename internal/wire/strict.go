package wire

// Strict checks that b is exactly one JSON value in UTF-8, with white space at
// most around it, nested at most [MaxDepth] deep, in which no object at any
// depth has two members of the same name (compared after unescaping). It is
// what a governed message, a guest's answer and a mutated payload must satisfy
// (protocol.md §6).
//
// The error is an *[Error]: [CodeInvalid] for duplicates and for depth,
// [CodeParse] for everything else.
func Strict(b []byte) error {
	s := borrow(b, true)
	defer s.giveBack()
	s.document()
	if e := s.verdict(); e != nil {
		return e
	}
	return nil
}

// Valid checks that b is exactly one JSON value in UTF-8, nested at most
// [MaxDepth] deep, and lets duplicate names pass. Errors are those of [Strict].
func Valid(b []byte) error {
	s := scanner{b: b}
	s.document()
	if e := s.verdict(); e != nil {
		return e
	}
	return nil
}
