package door

import (
	"net/http"
	"time"
)

// writeTime is how long a caller may leave one write waiting. A caller that does
// not read keeps what answers it, and what that holds.
const writeTime = time.Minute

// timedWriter bounds each write, and none of the time between them: a stream may
// be silent for hours.
type timedWriter struct {
	http.ResponseWriter
	control *http.ResponseController
}

// Unwrap is for http.ResponseController.
func (w *timedWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w *timedWriter) Write(p []byte) (int, error) {
	defer w.within()()
	return w.ResponseWriter.Write(p)
}

// FlushError is how http.ResponseController flushes.
func (w *timedWriter) FlushError() error {
	defer w.within()()
	return w.control.Flush()
}

// Flush is for handlers that ask for an http.Flusher.
func (w *timedWriter) Flush() { _ = w.FlushError() }

// within sets the deadline; what it returns takes it back: under HTTP/2 one that
// passes between writes would end the stream.
func (w *timedWriter) within() func() {
	if w.control.SetWriteDeadline(time.Now().Add(writeTime)) != nil {
		return func() {}
	}
	return func() { _ = w.control.SetWriteDeadline(time.Time{}) }
}
