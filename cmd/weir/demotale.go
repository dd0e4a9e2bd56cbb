package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"text/tabwriter"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/weir-mcp/weir/abi"
	"github.com/weir-mcp/weir/gateway"
	"github.com/weir-mcp/weir/gateway/chain"
	"github.com/weir-mcp/weir/gateway/relay"
	"github.com/weir-mcp/weir/internal/wire"
)

// demoTale tells what happens to each call of the demo. The gateway reports to
// it from its own goroutines.
type demoTale struct {
	out   io.Writer
	hide  string // the folder of the demo, shown as nothing
	calls int

	mu      sync.Mutex
	lines   []string
	reached bool // the backend saw the call
}

// setting says what stands where.
func (t *demoTale) setting(backend string) {
	fmt.Fprintf(t.out, `
  client → [ weir gateway ] → %s
               │
               ├─ host local: %s (WebAssembly, in this process)
               └─ host team:  examples/native-host (another team's interceptor server, over stdio)

Of each call: what went in, the chain that governed it, what the backend saw, what came back. A mutation is
applied, or passed when it changed nothing, or discarded when the call was blocked all the same; nobody waits for
a sink that was started.
`, backend, strings.Join(demoModules, ", "))
}

func (t *demoTale) begin(title, tool string, arguments map[string]any) {
	t.mu.Lock()
	t.lines, t.reached = nil, false
	t.mu.Unlock()
	t.calls++
	fmt.Fprintf(t.out, "\n%d. %s\n   in       %s %s\n", t.calls, title, tool, t.show(arguments))
}

// decided writes down one governed phase of a tools/call.
func (t *demoTale) decided(op *gateway.Operation, out *gateway.Outcome) {
	if op.Event != abi.ToolsCall {
		return
	}
	verdict := "released"
	if !out.Released() {
		verdict = "blocked: " + string(out.Status)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "   chain    %s, %s: %s in %s\n", op.Phase, op.Direction, verdict, milliseconds(out.TotalDuration))
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	var found []string
	for i, r := range out.Results {
		fmt.Fprintf(w, "            %d. %s\t%s\ton %s\t%s%s\n", i+1, r.Type, r.Name, r.Host, r.Effect, took(&r))
		for _, m := range messagesOf(r.Result) {
			found = append(found, r.Name+": "+m)
		}
	}
	_ = w.Flush()
	for _, text := range found {
		fmt.Fprintf(&b, "            %s\n", text)
	}
	t.add(b.String())
}

// took is one more cell with how long a step took; nobody waits for a sink.
func took(r *chain.StepResult) string {
	if r.Effect == chain.EffectStarted {
		return ""
	}
	return "\t" + milliseconds(r.Duration)
}

func messagesOf(r *abi.Result) (texts []string) {
	if r == nil {
		return nil
	}
	for _, m := range r.Messages {
		text := m.Message
		if m.Path != "" {
			text += " (" + m.Path + ")"
		}
		texts = append(texts, text)
	}
	return texts
}

func milliseconds(d time.Duration) string { return fmt.Sprintf("%.1f ms", d.Seconds()*1000) }

func (t *demoTale) add(text string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.lines = append(t.lines, text)
}

// watch lets the tale see what reaches the backend.
func (t *demoTale) watch(backend relay.End) relay.End { return &watchedEnd{backend, t} }

type watchedEnd struct {
	relay.End
	tale *demoTale
}

func (e *watchedEnd) Write(message []byte) error {
	if m, err := wire.Read(message); err == nil && m.Method == abi.ToolsCall {
		e.tale.mu.Lock()
		e.tale.reached = true
		e.tale.mu.Unlock()
		e.tale.add(fmt.Sprintf("   backend  %s\n", e.tale.clean(string(m.Params))))
	}
	return e.End.Write(message)
}

func (t *demoTale) end(result *mcp.CallToolResult, err error) {
	t.mu.Lock()
	lines, reached := t.lines, t.reached
	t.mu.Unlock()
	for _, line := range lines {
		fmt.Fprint(t.out, line)
	}
	if !reached {
		fmt.Fprintln(t.out, "   backend  saw nothing")
	}
	fmt.Fprintf(t.out, "   out      %s\n", t.answer(result, err))
}

// answer is what the client got.
func (t *demoTale) answer(result *mcp.CallToolResult, err error) string {
	if rpc, ok := errors.AsType[*jsonrpc.Error](err); ok {
		return t.clean(fmt.Sprintf("error %d: %s %s", rpc.Code, rpc.Message, rpc.Data))
	}
	if err != nil {
		return t.clean("error: " + err.Error())
	}
	return t.show(result)
}

func (t *demoTale) show(v any) string {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return err.Error()
	}
	return t.clean(strings.TrimSpace(b.String()))
}

// clean takes the folder of the demo out of paths, which are long and random.
func (t *demoTale) clean(text string) string {
	spelled := strings.Trim(string(wire.AppendString(nil, t.hide)), `"`)
	return strings.ReplaceAll(strings.ReplaceAll(text, spelled, ""), t.hide, "")
}

func (t *demoTale) howToGoOn() {
	fmt.Fprint(t.out, `
That was one chain, merged from a folder of modules and another team's server. To go on:

  go install ./cmd/weir                      the one binary
  go generate ./examples/...                 the example modules, into examples/interceptors
  weir plan --hosts examples/interceptors    the chain for each event and phase
  weir gateway --hosts examples/interceptors -- npx -y @modelcontextprotocol/server-everything
                                             put this line into your MCP client's configuration
  weir demo --serve                          the modules as an interceptor server over HTTP
  README.md, "Write a module"                your own interceptor in under 30 lines
`)
}
