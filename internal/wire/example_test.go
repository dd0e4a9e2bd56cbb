package wire_test

import (
	"fmt"
	"strings"

	"github.com/weir-mcp/weir/internal/wire"
)

// A relay reads a line, governs what it must, and passes on the rest as sent.
func Example() {
	in := strings.NewReader(`{"jsonrpc":"2.0","id":1.0,"method":"tools/call","params":{"name":"echo","n":9007199254740993},"x":"<&>"}
{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"safe","Name":"evil"}}
`)
	lines := wire.NewLineReader(in, 4<<20)
	for {
		line, err := lines.Next()
		if err != nil {
			break
		}
		m, err := wire.Read(line)
		if bad := wire.AsError(err); bad != nil {
			fmt.Println(string(wire.AppendFailure(nil, bad.ID.Raw(), bad.Code, bad.Reason, nil)))
			continue
		}
		fmt.Println(m.Kind, m.Method, m.ID, m.ID.Key())
		fmt.Println(string(wire.Flat(nil, m.WithParams([]byte("{\n  \"name\": \"echo\"\n}")))))
	}
	// Output:
	// request tools/call 1.0 1
	// {"jsonrpc":"2.0","id":1.0,"method":"tools/call","params":{  "name": "echo"},"x":"<&>"}
	// {"jsonrpc":"2.0","id":2,"error":{"code":-32600,"message":"member names that are equal or differ only in case"}}
}

func ExampleGet() {
	params := []byte(`{"name":"echo","_meta":{"progressToken":1e0}}`)
	token, ok := wire.Get(params, "_meta", "progressToken")
	fmt.Println(string(token), ok)
	// Output: 1e0 true
}

func ExampleObjectWriter() {
	w := wire.OpenObject(nil)
	w.String("method", "tools/call")
	w.Object("params", func(w *wire.ObjectWriter) { w.Raw("n", []byte("1.0")) })
	fmt.Println(string(w.Close()))
	// Output: {"method":"tools/call","params":{"n":1.0}}
}

func ExampleEqual() {
	fmt.Println(wire.Equal([]byte(`{"a":1,"b":"\u0078"}`), []byte(`{"b":"x","a":1.0}`)))
	// Output: true
}
