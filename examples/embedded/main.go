// Command embedded is a program that governs its own MCP traffic with weir's
// parts, without weir's command: a client of a phone book, behind a chain of
// one host of its own and of what the caller's organisation adds. README.md is
// its manual page.
//
//	go run ./examples/embedded
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/weir-mcp/weir/abi"
	"github.com/weir-mcp/weir/gateway"
	"github.com/weir-mcp/weir/gateway/hosts"
	"github.com/weir-mcp/weir/gateway/middleware"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Stdout, slog.New(slog.DiscardHandler)); err != nil {
		fmt.Fprintln(os.Stderr, "embedded:", err)
		os.Exit(1)
	}
}

// user is whoever this program works for at the moment. A program of more use
// takes them from its own sign-in.
type user struct{ name, organisation string }

type userKey struct{}

// run looks some names up for some users.
func run(ctx context.Context, out io.Writer, log *slog.Logger) (err error) {
	north, err := serveRules(log)
	if err != nil {
		return err
	}
	defer north.close()
	house, err := houseRules()
	if err != nil {
		return err
	}
	journal := &journal{}
	chain, err := gateway.NewChain(gateway.ChainOptions{
		Hosts: hosts.NewSet([]*hosts.Host{hosts.InProcess("house", house, hosts.Options{Logger: log})}, hosts.SetOptions{}),
		// Whoever calls is the business of the resolver, and of no interceptor.
		Resolver:  organisations{"north": north}.resolve,
		Observers: []gateway.Observer{journal.observer()},
		Logger:    log,
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, chain.Close(context.WithoutCancel(ctx))) }()

	client := middleware.NewClient(&mcp.Implementation{Name: "embedded", Version: "1.0.0"}, nil, chain, middleware.Options{
		Principal: func(ctx context.Context, _ mcp.Request) *abi.Principal {
			u, ok := ctx.Value(userKey{}).(user)
			if !ok {
				return nil
			}
			return &abi.Principal{Type: abi.PrincipalUser, ID: u.name, Claims: claims(u)}
		},
	})
	near, far := mcp.NewInMemoryTransports()
	if _, err := phoneBook().Connect(ctx, far, nil); err != nil {
		return err
	}
	session, err := client.Connect(ctx, near, nil)
	if err != nil {
		return err
	}
	defer session.Close()

	for _, ask := range []struct {
		user
		about string
	}{
		{user{"ann", "north"}, "Bo"},
		{user{"ben", "south"}, "Bo"},
		{user{"ann", "north"}, "everybody"},
		{user{"ben", "south"}, "everybody"},
		{user{"ben", "south"}, "the password"},
	} {
		answer, err := lookUp(context.WithValue(ctx, userKey{}, ask.user), session, ask.about)
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "%s of %s asks for %s: %s\n", ask.name, ask.organisation, ask.about, answer)
	}
	fmt.Fprintln(out, journal)
	return nil
}

// lookUp calls the tool. That a call was blocked is an answer, too.
func lookUp(ctx context.Context, session *mcp.ClientSession, about string) (string, error) {
	res, err := session.CallTool(ctx, &mcp.CallToolParams{Name: "look-up", Arguments: map[string]any{"name": about}})
	if refused, ok := errors.AsType[*jsonrpc.Error](err); ok {
		return why(refused), nil
	}
	if err != nil {
		return "", err
	}
	return res.Content[0].(*mcp.TextContent).Text, nil
}

// why is what the error of a blocked call says (protocol.md §6 "Blocked"): it
// names the interceptor since the program is on the side that the chain guards.
func why(refused *jsonrpc.Error) string {
	var data struct {
		Interceptor string
		Messages    []struct{ Message string }
	}
	if err := json.Unmarshal(refused.Data, &data); err != nil || len(data.Messages) == 0 {
		return refused.Message
	}
	return fmt.Sprintf("%s, %s: %s", refused.Message, data.Interceptor, data.Messages[0].Message)
}
