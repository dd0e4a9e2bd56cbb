package main

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/weir-mcp/weir/abi"
)

// sizes are the sizes of a payload, in bytes.
var sizes = []int{1 << 10, 100 << 10}

func sizeName(size int) string { return fmt.Sprintf("%d KB", size>>10) }

// call is a request of tools/call with a payload of about so many bytes: records
// of short texts and numbers, of which every other one holds an address.
func call(size int) *abi.Invocation {
	var records []string
	for n := 0; n < size-60; n += len(records[len(records)-1]) + 1 {
		i := len(records)
		contact := "see the other ticket"
		if i%2 == 0 {
			contact = fmt.Sprintf("user.%d@mail%d.example.com", i, i%7)
		}
		records = append(records, fmt.Sprintf(`{"contact":"%s","id":%d,"note":"line one\nline two, call back \"soon\"","open":%t,"price":%d.5}`, contact, 1000+i, i%3 == 0, i))
	}
	return &abi.Invocation{Name: "redact", Event: "tools/call", Phase: abi.Request,
		Payload: json.RawMessage(`{"arguments":{"records":[` + strings.Join(records, ",") + `]},"name":"file_tickets"}`)}
}
