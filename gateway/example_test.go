package gateway_test

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/weir-mcp/weir/abi"
	"github.com/weir-mcp/weir/gateway"
	"github.com/weir-mcp/weir/gateway/chain"
	"github.com/weir-mcp/weir/gateway/hosts"
	"github.com/weir-mcp/weir/gateway/relay"
)

// A gateway over one host in this process, asked as a relay asks it. Policy
// turns a guard that blocks into one that is only recorded.
func ExampleNew() {
	quiet := slog.New(slog.DiscardHandler)
	decide := func(policy *chain.Policy) {
		local := hosts.InProcess("local", words(guard()), hosts.Options{Logger: quiet})
		g, err := gateway.New(gateway.Options{ChainOptions: gateway.ChainOptions{
			Hosts:  hosts.NewSet([]*hosts.Host{local}, hosts.SetOptions{}),
			Policy: policy,
			Logger: quiet,
		}})
		if err != nil {
			panic(err)
		}
		defer g.Close(context.Background())
		op := relay.Operation{
			Scope:   relay.Scope{Event: abi.ToolsCall, Phase: abi.Request},
			Payload: []byte(`{"name":"evil"}`),
			Arrived: time.Now(),
		}
		if d := g.Govern(context.Background(), op); d.Block != nil {
			fmt.Println("blocked:", d.Block.Reason, "by", d.Block.Interceptor)
			return
		}
		fmt.Println("released")
	}

	decide(nil)
	audit := abi.Audit
	policy, err := chain.NewPolicy([]chain.Entry{{Interceptor: "guard", Mode: &audit, Source: "example"}})
	if err != nil {
		panic(err)
	}
	decide(policy)

	// Output:
	// blocked: validation_failed by guard
	// released
}
