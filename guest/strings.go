package guest

import (
	"encoding/json"
	"errors"
)

// Option changes which strings [EditStrings] and [WalkStrings] visit.
type Option func(*walker)

// AndNames has the names of members visited too, each before its value. For
// them [Path.IsName] is true.
func AndNames() Option { return func(w *walker) { w.names = true } }

// EditStrings calls edit for every string value in raw, at any depth, in the
// order of the text, and puts what it returns in the string's place. All other
// bytes stay as they were: white space, the order and spelling of everything
// else, and the spelling of strings that edit returned unchanged, be it odd
// ("\u0041", "\/", half of a surrogate pair). Where nothing changed it returns
// raw itself.
//
// edit is given the string decoded. In it, half of a surrogate pair alone is
// U+FFFD, as it is in the new spelling of a string that was changed. The path is
// good until edit returns.
//
// It fails, and returns raw, when raw is not one JSON value in UTF-8 that is
// nested at most [MaxDepth] deep.
func EditStrings(raw json.RawMessage, edit func(at Path, text string) string, options ...Option) (edited json.RawMessage, changed bool, err error) {
	w := newWalker(raw, options)
	var out []byte
	done := 0 // raw[:done] is in out
	err = w.walk(func(from, to int, text string) error {
		now := edit(Path{w}, text)
		if now == text {
			return nil
		}
		if out == nil {
			out = make([]byte, 0, len(raw)+max(len(now)-len(text), 0)+64)
		}
		out = append(out, raw[done:from]...)
		out = AppendText(out, now)
		done = to
		return nil
	})
	if err != nil || out == nil {
		return raw, false, err
	}
	return append(out, raw[done:]...), true, nil
}

// WalkStrings calls visit for every string value in raw, as [EditStrings] does,
// until it returns false. The error is the same; what comes after a visit that
// returned false is not looked at.
func WalkStrings(raw json.RawMessage, visit func(at Path, text string) bool, options ...Option) error {
	w := newWalker(raw, options)
	err := w.walk(func(_, _ int, text string) error {
		if !visit(Path{w}, text) {
			return errStop
		}
		return nil
	})
	if err == errStop {
		return nil
	}
	return err
}

var errStop = errors.New("stopped")

// walker is a scanner that decodes what it visits.
type walker struct {
	scanner
	text   string // the text of b; decoded strings share it
	names  bool
	atName bool
	few    [16]container // room for s.open, enough for most
}

func newWalker(raw []byte, options []Option) *walker {
	w := &walker{scanner: scanner{b: raw}}
	w.open = w.few[:0]
	for _, o := range options {
		o(w)
	}
	return w
}

func (w *walker) walk(each func(from, to int, text string) error) error {
	err := w.value(func(from, to int, kind textKind, name bool) error {
		if name && !w.names {
			return nil
		}
		if w.text == "" {
			w.text = string(w.b) // once, so that no string needs a copy of its own
		}
		w.atName = name
		return each(from, to, decodeText(w.text[from+1:to-1], kind))
	})
	if err != nil {
		return err
	}
	return w.end()
}
