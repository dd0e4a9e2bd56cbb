package guests

import (
	"encoding/json"
	"fmt"
	"strings"
)

// Text is the params of a tools/call, of about so many bytes: one text of lines of
// prose, of which every fourth holds an address.
func Text(size int) json.RawMessage {
	var text strings.Builder
	for i := 0; text.Len() < size-150; i++ {
		if i%4 == 0 {
			fmt.Fprintf(&text, `Whatever else it was, user.%d@mail%d.example.com had it first.\n`, i, i%7)
			continue
		}
		text.WriteString(`The quick brown fox, who had not been asked, jumped over the lazy dog.\n`)
	}
	return json.RawMessage(`{"arguments":{"content":"` + text.String() + `","path":"notes.txt"},"name":"write_file"}`)
}

// Payload is the params of a tools/call, of about so many bytes: records of short
// texts and numbers, of which every other one holds an address.
func Payload(size int) json.RawMessage {
	var records []string
	for n := 0; n < size-60; n += len(records[len(records)-1]) + 1 {
		i := len(records)
		contact := "see the other ticket"
		if i%2 == 0 {
			contact = fmt.Sprintf("user.%d@mail%d.example.com", i, i%7)
		}
		records = append(records, fmt.Sprintf(`{"contact":"%s","id":%d,"note":"line one\nline two, call back \"soon\"","open":%t,"price":%d.5}`, contact, 1000+i, i%3 == 0, i))
	}
	return json.RawMessage(`{"arguments":{"records":[` + strings.Join(records, ",") + `]},"name":"file_tickets"}`)
}
