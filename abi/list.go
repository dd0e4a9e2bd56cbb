package abi

import (
	"errors"
	"fmt"
	"slices"
)

// Page is one page of an interceptors/list result, as read (protocol.md §2).
type Page struct {
	Interceptors []Descriptor
	// Skipped holds what could not be used. One bad descriptor of a remote
	// host never spoils its list; whether it spoils a module is the host's
	// business.
	Skipped    []Skipped
	NextCursor string
}

// Skipped is a descriptor that is malformed.
type Skipped struct {
	Index int    // position on its page, from 0
	Name  string // empty when not even the name could be read
	Err   error
}

// ReadPage reads the result of interceptors/list. It fails only when the result
// as a whole makes no sense.
func ReadPage(raw []byte) (Page, error) {
	var p Page
	m, err := readObject(raw)
	if err != nil {
		return p, fmt.Errorf("the list of interceptors: %w", err)
	}
	if p.NextCursor, _, err = m.string(keyNextCursor); err != nil {
		return p, err
	}
	list, ok := m.get(keyInterceptors)
	if !ok {
		return p, errors.New(`the list of interceptors: "interceptors" is missing`)
	}
	items, err := readArray(list, keyInterceptors)
	if err != nil {
		return p, err
	}
	for i, item := range items {
		d, err := ReadDescriptor(item)
		if err != nil {
			p.Skipped = append(p.Skipped, Skipped{Index: i, Name: d.Name, Err: err})
			continue
		}
		p.Interceptors = append(p.Interceptors, d)
	}
	return p, nil
}

// AppendPage appends an interceptors/list result. It is also what
// weir_describe hands over (abi.md), with no cursor.
func AppendPage(dst []byte, interceptors []Descriptor, nextCursor string) []byte {
	o := openObject(dst)
	b := append(o.key(keyInterceptors), '[')
	for i := range interceptors {
		if i > 0 {
			b = append(b, ',')
		}
		b = interceptors[i].AppendJSON(b)
	}
	o.b = append(b, ']')
	o.optString(keyNextCursor, nextCursor)
	return o.close()
}

// ListParams is the parameters of interceptors/list.
type ListParams struct {
	// Event filters; empty lists everything. It is never a pattern.
	Event  string
	Cursor string
}

// ReadListParams reads the parameters of interceptors/list; absent (nil) ones
// are empty. A failure is an [*Error] with ReasonParams.
func ReadListParams(raw []byte) (ListParams, error) {
	var p ListParams
	if len(raw) == 0 {
		return p, nil
	}
	m, err := readObject(raw)
	if err != nil {
		return p, BadParams("", "", err)
	}
	if p.Event, _, err = m.string(keyEvent); err != nil {
		return p, BadParams("", keyEvent, err)
	}
	if IsPattern(p.Event) {
		return p, BadParams("", keyEvent, errors.New("the event is a pattern; name one event"))
	}
	if p.Cursor, _, err = m.string(keyCursor); err != nil {
		return p, BadParams("", keyCursor, err)
	}
	return p, nil
}

// AppendJSON appends p as an object.
func (p ListParams) AppendJSON(dst []byte) []byte {
	o := openObject(dst)
	o.optString(keyEvent, p.Event)
	o.optString(keyCursor, p.Cursor)
	return o.close()
}

// SupportedEvents returns the sorted union of the events and patterns that the
// given interceptors hook, as the capability announces it (protocol.md §4). It
// is never nil.
func SupportedEvents(interceptors []Descriptor) []string {
	events := []string{}
	for _, d := range interceptors {
		for _, h := range d.Hooks {
			events = append(events, h.Events...)
		}
	}
	slices.Sort(events)
	return slices.Compact(events)
}

// AppendCapability appends the settings object of the capability
// ([ExtensionKey]).
func AppendCapability(dst []byte, supportedEvents []string) []byte {
	o := openObject(dst)
	o.strings(keySupportedEvents, supportedEvents)
	return o.close()
}
