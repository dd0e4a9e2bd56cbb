package relay_test

import (
	"bytes"
	"context"
	"fmt"
	"io"

	"github.com/weir-mcp/weir/abi"
	"github.com/weir-mcp/weir/gateway/relay"
)

// redactor replaces a word in what tools answer, and looks at nothing else.
type redactor struct{}

func (redactor) Governs(s relay.Scope) bool {
	return s.Event == abi.ToolsCall && s.Phase == abi.Response
}

func (redactor) Govern(_ context.Context, op relay.Operation) relay.Decision {
	return relay.Decision{Payload: bytes.ReplaceAll(op.Payload, []byte("hunter2"), []byte("*******"))}
}

// A client asks a backend through a relay.
func ExampleRun() {
	toRelay, client := io.Pipe()
	clientSees, toClient := io.Pipe()
	backendSees, toBackend := io.Pipe()
	fromBackend, backend := io.Pipe()

	done := make(chan error)
	go func() {
		done <- relay.Run(context.Background(),
			relay.Lines(toRelay, toClient, 1<<20), relay.Lines(fromBackend, toBackend, 1<<20),
			relay.Options{Governor: redactor{}})
	}()

	line := make([]byte, 1024)
	go fmt.Fprintln(client, `{"jsonrpc":"2.0", "id":1.0, "method":"tools/call", "params":{"name":"whoami"}}`)
	n, _ := backendSees.Read(line)
	fmt.Printf("backend: %s", line[:n])

	go fmt.Fprintln(backend, `{"jsonrpc":"2.0", "id":1.0, "result":{"content":[{"type":"text", "text":"hunter2"}]}}`)
	n, _ = clientSees.Read(line)
	fmt.Printf("client:  %s", line[:n])

	client.Close()
	backend.Close()
	<-done

	// Output:
	// backend: {"jsonrpc":"2.0", "id":1.0, "method":"tools/call", "params":{"name":"whoami"}}
	// client:  {"jsonrpc":"2.0", "id":1.0, "result":{"content":[{"type":"text", "text":"*******"}]}}
}
