// Package sse reads and writes server-sent events (the text/event-stream of the
// HTML standard) the way a relay of MCP needs it: strictly, within bounds, one
// event at a time, and without losing what a browser would throw away.
//
// # What it does
//
// [Reader] splits a stream into events and comments. It takes LF, CR and CR LF as
// line ends and one byte order mark, gives a comment as soon as its line has
// ended, wherever it stands, and an event as soon as its empty line has begun:
// it never waits for the byte behind a CR. An event without data is an event
// too, since its id or retry counts. What is longer than [Limits] is never kept:
// an event whose data are too large is dropped as it streams and reported as a
// [wire.TooLong], which says whom to answer, and reading goes on behind it; any
// other line that is too long ends the stream.
//
// [AppendEvent] and [Writer] write one event or comment. Data stand on one line,
// always: JSON goes through [wire.Flat] before, and text that still holds a line
// break is refused, as is a line break or NUL in an id or a name. So no peer can
// smuggle an event into another one (protocol.md §6 "What crosses unchanged").
//
// # What it may not know
//
// HTTP, MCP, sessions. What stands in the data is the caller's business.
//
// # Use
//
//	in, out := sse.NewReader(answer.Body, sse.Limits{}), sse.NewWriter(w, flush)
//	for {
//		event, err := in.Next()
//		…
//		event.Data = wire.Flat(nil, event.Data)
//		err = out.Write(&event)
//	}
package sse
