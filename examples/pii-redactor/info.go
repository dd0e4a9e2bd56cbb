package main

import (
	"encoding/json"
	"strconv"
)

// info is how many of each kind were redacted, for the invoker's records.
func (r *redactor) info() json.RawMessage {
	b := []byte(`{"redacted":{`)
	for k, n := range r.total {
		if n == 0 {
			continue
		}
		if b[len(b)-1] != '{' {
			b = append(b, ',')
		}
		b = append(b, '"')
		b = append(b, configNames[k]...)
		b = append(b, `":`...)
		b = strconv.AppendInt(b, int64(n), 10)
	}
	return append(b, '}', '}')
}
