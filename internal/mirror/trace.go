package mirror

import "net/http"

// Traceparent is the W3C Trace Context of a request, unchecked. Of two of them
// neither counts (W3C Trace Context §3.2).
func Traceparent(h http.Header) string {
	if all := h["Traceparent"]; len(all) == 1 {
		return all[0]
	}
	return ""
}
