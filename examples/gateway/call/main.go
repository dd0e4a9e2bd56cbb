// Command call is a small MCP client: it calls one tool of a server, prints what
// comes back, and ends. It knows nothing of interceptors: to the client, a gateway
// is the server.
//
//	go run ./examples/gateway/call [-log] TOOL ARGUMENTS COMMAND ARG…
//	go run ./examples/gateway/call TOOL ARGUMENTS URL
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

func main() {
	showLog := flag.Bool("log", false, "show what the server logs, on stderr")
	flag.Parse()
	if flag.NArg() < 3 {
		fmt.Fprintln(os.Stderr, "usage: call [-log] TOOL ARGUMENTS COMMAND ARG…  or  call TOOL ARGUMENTS URL")
		os.Exit(2)
	}
	logs := io.Discard
	if *showLog {
		logs = os.Stderr
	}
	// Long, since the first "go run" of a command builds it.
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	err := call(ctx, transport(flag.Args()[2:], logs), flag.Arg(0), json.RawMessage(flag.Arg(1)))
	if err != nil {
		log.Fatal(err) // no need to cancel: this is the end
	}
}

// transport leads to a server at a URL, or to one that it starts.
func transport(server []string, logs io.Writer) mcp.Transport {
	if strings.HasPrefix(server[0], "http://") || strings.HasPrefix(server[0], "https://") {
		return &mcp.StreamableClientTransport{Endpoint: server[0]}
	}
	command := exec.Command(server[0], server[1:]...)
	command.Stderr = logs
	return &mcp.CommandTransport{Command: command}
}

// call prints the texts of the tool's result, or the error that came instead: a
// refusal of a gateway is an answer like any other.
func call(ctx context.Context, to mcp.Transport, tool string, arguments json.RawMessage) error {
	session, err := mcp.NewClient(&mcp.Implementation{Name: "call", Version: "1.0.0"}, nil).Connect(ctx, to, nil)
	if err != nil {
		return err
	}
	result, err := session.CallTool(ctx, &mcp.CallToolParams{Name: tool, Arguments: arguments})
	if refusal, ok := errors.AsType[*jsonrpc.Error](err); ok {
		fmt.Printf("error %d: %s %s\n", refusal.Code, refusal.Message, refusal.Data)
		return session.Close()
	}
	if err != nil {
		return errors.Join(err, session.Close())
	}
	for _, content := range result.Content {
		if text, ok := content.(*mcp.TextContent); ok {
			fmt.Println(text.Text)
		}
	}
	return session.Close()
}
