package main

import (
	"strconv"
	"unicode/utf8"

	"github.com/weir-mcp/weir/guest"
)

// maxText bounds each text of a line as it is spelled in JSON, so that a line
// with all of them fits into the 4 KiB that a host keeps (abi.md, Limits).
const maxText = 400

// line is the line of one operation. Members that the host does not know, or
// that the event does not have, are left out.
func line(o *guest.Operation) []byte {
	w := writer{b: []byte{'{'}}
	w.text("time", o.Context.Timestamp)
	w.text("event", o.Event)
	w.text("phase", string(o.Phase))
	if p := o.Context.Principal; p != nil {
		w.text("principalType", p.Type)
		w.text("principal", p.ID)
	}
	w.text("session", o.Context.SessionID)
	w.text("trace", o.Context.TraceID)
	request := o.Payload
	if o.Phase == guest.Response {
		request = o.Request
	}
	switch o.Event {
	case guest.ToolsCall:
		w.textAt("tool", request, "name")
	case guest.PromptsGet:
		w.textAt("prompt", request, "name")
	case guest.ResourcesRead, guest.ResourcesSubscribe:
		if uri, ok := guest.GetText(request, "uri"); ok {
			w.text("uri", barePart(uri))
		}
	}
	if request != nil {
		w.raw("requestBytes", strconv.Itoa(len(request)))
	}
	if o.Phase == guest.Response {
		w.raw("responseBytes", strconv.Itoa(len(o.Payload)))
		if v, ok := guest.Get(o.Payload, "isError"); ok && o.Event == guest.ToolsCall && string(v) == "true" {
			w.raw("isError", "true")
		}
	}
	return append(w.b, '}')
}

// writer writes the members of one object.
type writer struct{ b []byte }

func (w *writer) key(name string) {
	if len(w.b) > 1 {
		w.b = append(w.b, ',')
	}
	w.b = append(guest.AppendText(w.b, name), ':')
}

func (w *writer) raw(name, value string) {
	w.key(name)
	w.b = append(w.b, value...)
}

func (w *writer) text(name, value string) {
	if value == "" {
		return
	}
	w.key(name)
	w.b = guest.AppendText(w.b, shorten(value))
}

func (w *writer) textAt(name string, object []byte, member string) {
	if s, ok := guest.GetText(object, member); ok {
		w.text(name, s)
	}
}

// shorten cuts a text where its spelling passes maxText and says so by "…".
func shorten(s string) string {
	spelled := 0
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		switch {
		case r < ' ':
			spelled += len(`\u0000`)
		case r == '"' || r == '\\':
			spelled += 2
		case r == utf8.RuneError:
			spelled += utf8.RuneLen(utf8.RuneError)
		default:
			spelled += n
		}
		if spelled > maxText {
			return s[:i] + "…"
		}
		i += n
	}
	return s
}
