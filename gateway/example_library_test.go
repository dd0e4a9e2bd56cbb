package gateway_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"

	"github.com/weir-mcp/weir/abi"
	"github.com/weir-mcp/weir/gateway"
	"github.com/weir-mcp/weir/gateway/chain"
	"github.com/weir-mcp/weir/gateway/hosts"
	"github.com/weir-mcp/weir/gateway/relay"
	"github.com/weir-mcp/weir/runtime/library"
)

// The examples of docs/library.md: what that page shows stands in here, letter by
// letter (internal/house).

// quiet is a logger for examples whose log is not their point.
var quiet = slog.New(slog.DiscardHandler)

// rules are two interceptors in Go: a validator that refuses one tool, and a
// mutator that hides a word.
func rules() *library.Library {
	lib := library.New(library.Options{})
	err := errors.Join(
		lib.Register(library.CheckTool("no-shell", func(tool string, _ json.RawMessage) bool { return tool != "shell" })),
		lib.Register(library.Mutator("hide-names", abi.OnBoth(abi.ToolsCall), func(_ context.Context, inv *abi.Invocation) (json.RawMessage, error) {
			return bytes.ReplaceAll(inv.Payload, []byte("Ada"), []byte("[name]")), nil
		})),
	)
	if err != nil {
		panic(err)
	}
	return lib
}

// Discover from any number of hosts, execute one operation after the other.
func ExampleChain() {
	ctx := context.Background()
	lib := library.New(library.Options{})
	err := errors.Join(
		lib.Register(library.CheckTool("no-shell", func(tool string, _ json.RawMessage) bool {
			return tool != "shell"
		})),
		lib.Register(library.Mutator("hide-names", abi.OnBoth(abi.ToolsCall), func(_ context.Context, inv *abi.Invocation) (json.RawMessage, error) {
			return bytes.ReplaceAll(inv.Payload, []byte("Ada"), []byte("[name]")), nil
		})),
	)
	if err != nil {
		panic(err)
	}
	c, err := gateway.NewChain(gateway.ChainOptions{
		Hosts: hosts.NewSet([]*hosts.Host{
			hosts.InProcess("local", lib, hosts.Options{Logger: quiet}),
			// hosts.HTTP("security", hosts.Endpoint{URL: "https://sec.internal/mcp"}, hosts.Options{}),
			// hosts.Stdio("legacy", hosts.Process{Command: []string{"./legacy"}, Env: hosts.Environment(nil)}, hosts.Options{}),
		}, hosts.SetOptions{}),
		Logger: quiet,
	})
	if err != nil {
		panic(err)
	}
	defer c.Close(ctx)

	for _, params := range []string{`{"name":"mail","arguments":{"to":"Ada","n":1.0}}`, `{"name":"shell"}`} {
		out := c.Execute(ctx, gateway.Operation{Event: abi.ToolsCall, Payload: []byte(params)})
		if !out.Released() {
			fmt.Println("blocked:", out.Status, "by", out.Aborted.Interceptor)
			continue
		}
		fmt.Println("released:", string(out.FinalPayload))
		for _, step := range out.Results {
			fmt.Println(" ", step.Type, step.Name, step.Effect)
		}
	}

	// Output:
	// released: {"name":"mail","arguments":{"to":"[name]","n":1.0}}
	//   mutation hide-names applied
	//   validation no-shell passed
	// blocked: validation_failed by no-shell
}

// One operation through a chain that is opened for it and closed behind it.
func ExampleExecuteOnce() {
	out, err := gateway.ExecuteOnce(context.Background(), gateway.ChainOptions{
		Hosts:  hosts.NewSet([]*hosts.Host{hosts.InProcess("local", rules(), hosts.Options{Logger: quiet})}, hosts.SetOptions{}),
		Logger: quiet,
	}, gateway.Operation{
		Event:     abi.ToolsCall,
		Phase:     abi.Response,
		Direction: abi.Receiving,
		Request:   []byte(`{"name":"who"}`),
		Payload:   []byte(`{"content":[{"type":"text","text":"It was Ada."}]}`),
	})
	if err != nil {
		panic(err)
	}
	fmt.Println(string(out.FinalPayload))

	// Output:
	// {"content":[{"type":"text","text":"It was [name]."}]}
}

// Policy: the author's mode and order are overruled, and one interceptor has to
// be there.
func ExampleChainOptions_policy() {
	audit, last := abi.Audit, abi.Priority(1000)
	policy, err := chain.NewPolicy([]chain.Entry{
		{Interceptor: "no-shell", Mode: &audit, Source: "main.go"},
		{Interceptor: "hide-names", PriorityHint: &last, Required: true, Source: "main.go"},
	})
	if err != nil {
		panic(err) // it contradicts itself
	}
	out, err := gateway.ExecuteOnce(context.Background(), gateway.ChainOptions{
		Hosts:  hosts.NewSet([]*hosts.Host{hosts.InProcess("local", rules(), hosts.Options{Logger: quiet})}, hosts.SetOptions{}),
		Policy: policy,
		Logger: quiet,
	}, gateway.Operation{Event: abi.ToolsCall, Payload: []byte(`{"name":"shell","arguments":{"who":"Ada"}}`)})
	if err != nil {
		panic(err)
	}
	fmt.Println(out.Status, string(out.FinalPayload))

	// Output:
	// success {"name":"shell","arguments":{"who":"[name]"}}
}

// Hosts by request: who calls decides who governs besides the configured hosts.
func ExampleResolver() {
	ctx := context.Background()
	tenants := map[string]*library.Library{"red": rules()}
	c, err := gateway.NewChain(gateway.ChainOptions{
		Hosts: gateway.Fixed(), // none that govern everybody
		Resolver: func(_ context.Context, op *gateway.Operation, c *abi.Context) (gateway.Resolved, error) {
			if c.Principal == nil {
				return gateway.Resolved{}, errors.New("who calls?") // blocks
			}
			lib, ok := tenants[c.Principal.ID]
			if !ok {
				return gateway.Resolved{}, nil // no further hosts
			}
			return gateway.Resolved{Key: c.Principal.ID, Open: func() (gateway.Hosts, error) {
				return hosts.NewSet([]*hosts.Host{hosts.InProcess("tenant", lib, hosts.Options{Logger: quiet})}, hosts.SetOptions{}), nil
			}}, nil
		},
		Logger: quiet,
	})
	if err != nil {
		panic(err)
	}
	defer c.Close(ctx)
	for _, who := range []string{"red", "blue", ""} {
		op := gateway.Operation{Event: abi.ToolsCall, Payload: []byte(`{"name":"shell"}`)}
		if who != "" {
			op.Context = &abi.Context{Principal: &abi.Principal{Type: abi.PrincipalUser, ID: who}}
		}
		out := c.Execute(ctx, op)
		fmt.Printf("%q: %s\n", who, out.Status)
	}

	// Output:
	// "red": validation_failed
	// "blue": success
	// "": discovery_failed
}

// What interceptors are told of an operation: the live request before the
// defaults, and then what the program knows.
func ExampleContextProvider() {
	lib := library.New(library.Options{})
	err := lib.Register(library.Sink("witness", abi.OnBoth("*"), func(_ context.Context, inv *abi.Invocation) error {
		p := inv.Context.Principal
		_, err := fmt.Println(p.Type, p.ID, string(p.Claims), "in", inv.Context.SessionID, "of", inv.Context.TraceID)
		return err
	}))
	if err != nil {
		panic(err)
	}
	_, err = gateway.ExecuteOnce(context.Background(), gateway.ChainOptions{
		Hosts:   hosts.NewSet([]*hosts.Host{hosts.InProcess("local", lib, hosts.Options{Logger: quiet})}, hosts.SetOptions{}),
		Context: &abi.Context{SessionID: "nightly run"},
		Provider: func(_ context.Context, _ *gateway.Operation, c *abi.Context) error {
			c.Principal = &abi.Principal{Type: abi.PrincipalService, ID: "batch", Claims: []byte(`{"team":"red","token":"t0p"}`)}
			return nil
		},
		Claims: []string{"team"},
		Logger: quiet,
	}, gateway.Operation{
		Event: abi.ResourcesRead,
		Payload: []byte(`{"uri":"file:///a","_meta":{
			"traceparent":"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}}`),
	})
	if err != nil {
		panic(err)
	}

	// Output:
	// service batch {"team":"red"} in nightly run of 0af7651916cd43dd8448eb211c80319c
}

// What a program asks a model, and what the model answers, pass the same chain:
// nothing of MCP is needed for that.
func ExampleChain_completion() {
	ctx := context.Background()
	lib := library.New(library.Options{})
	err := lib.Register(library.Validator("budget", abi.On(abi.Request, abi.LLMCompletion), func(_ context.Context, inv *abi.Invocation) (library.Verdict, error) {
		asked, err := abi.ReadCompletionRequest(inv.Payload)
		if err != nil {
			return library.Verdict{}, err
		}
		if asked.MaxTokens > 1000 {
			return library.Deny("ask for less"), nil
		}
		return library.Allow(), nil
	}))
	if err != nil {
		panic(err)
	}
	c, err := gateway.NewChain(gateway.ChainOptions{
		Hosts:  hosts.NewSet([]*hosts.Host{hosts.InProcess("local", lib, hosts.Options{Logger: quiet})}, hosts.SetOptions{}),
		Events: []string{abi.LLMCompletion},
		Logger: quiet,
	})
	if err != nil {
		panic(err)
	}
	defer c.Close(ctx)

	ask := func(maxTokens int64) error {
		request := abi.CompletionRequest{
			Model:     "m-1",
			MaxTokens: maxTokens,
			Messages:  []abi.CompletionMessage{{Role: "user", Content: abi.TextContent("Hello")}},
		}
		out := c.Execute(ctx, gateway.Operation{Event: abi.LLMCompletion, Payload: request.AppendJSON(nil)})
		if !out.Released() {
			return out.Refusal()
		}
		sent := out.FinalPayload
		// Here the program calls its model with what sent says.
		response := abi.CompletionResponse{
			Model:   "m-1",
			Message: abi.CompletionMessage{Role: "assistant", Content: abi.TextContent("Hi!")},
			Usage:   &abi.CompletionUsage{InputTokens: 1, OutputTokens: 2},
		}
		out = c.Execute(ctx, gateway.Operation{
			Event: abi.LLMCompletion, Phase: abi.Response, Direction: abi.Receiving,
			Request: sent, Payload: response.AppendJSON(nil),
		})
		if !out.Released() {
			return out.Refusal()
		}
		fmt.Println(string(out.FinalPayload))
		return nil
	}
	if err := ask(100); err != nil {
		panic(err)
	}
	var refused *relay.Refusal
	if errors.As(ask(100_000), &refused) {
		fmt.Println(refused.Text(), refused.Messages[0].Message)
	}

	// Output:
	// {"model":"m-1","message":{"role":"assistant","content":"Hi!"},"usage":{"inputTokens":1,"outputTokens":2}}
	// blocked by an interceptor ask for less
}
