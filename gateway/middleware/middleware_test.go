//lint:file-ignore SA1019 sampling and roots are deprecated, and governed for as long as a peer may use them

package middleware_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/weir-mcp/weir/abi"
	"github.com/weir-mcp/weir/gateway"
	"github.com/weir-mcp/weir/gateway/hosts"
	"github.com/weir-mcp/weir/gateway/middleware"
)

func TestEveryEventIsGovernedInBothPhases(t *testing.T) {
	sides(t, func(t *testing.T, at side) {
		tr, w := newTrail(t, gateway.ChainOptions{}), &world{}
		session := at.connect(t, tr, w, middleware.Options{})
		ctx := t.Context()

		said, err := say(session, "echo", "a secret")
		require.NoError(t, err)
		require.Equal(t, "heard a ******", said)
		require.Equal(t, []string{"echo a ******"}, w.all(), "as the tool got it")
		said, err = say(session, "leak", "")
		require.NoError(t, err)
		require.Equal(t, "the ******", said)

		tools, err := session.ListTools(ctx, nil)
		require.NoError(t, err)
		require.Equal(t, "says <******>", tools.Tools[0].Description)
		prompts, err := session.ListPrompts(ctx, nil)
		require.NoError(t, err)
		require.Len(t, prompts.Prompts, 1)
		prompt, err := session.GetPrompt(ctx, &mcp.GetPromptParams{Name: "greet", Arguments: map[string]string{"who": "secret agent"}})
		require.NoError(t, err)
		require.Equal(t, "a ****** for ****** agent", prompt.Messages[0].Content.(*mcp.TextContent).Text)
		resources, err := session.ListResources(ctx, nil)
		require.NoError(t, err)
		require.Len(t, resources.Resources, 1)
		file, err := session.ReadResource(ctx, &mcp.ReadResourceParams{URI: "file:///a"})
		require.NoError(t, err)
		require.Equal(t, "a ****** file", file.Contents[0].Text)
		found, err := mcp.CallCustomMethod[*searchParams, *searchResult](ctx, session, "acme/search", &searchParams{Query: "my secret"})
		require.NoError(t, err)
		require.Equal(t, []string{"my ******", "******"}, found.Hits)

		said, err = say(session, "ask", "my secret")
		require.NoError(t, err)
		require.Equal(t, "model saw my ******, has a ******", said)
		said, err = say(session, "person", "secret?")
		require.NoError(t, err)
		require.Equal(t, "accept ****** of ******? at ****** root", said)

		for _, event := range []string{"tools/call", "tools/list", "prompts/list", "prompts/get", "resources/list", "resources/read",
			"acme/search", "sampling/createMessage", "elicitation/create", "roots/list"} {
			for _, phase := range []string{"request", "response"} {
				require.Contains(t, tr.all(), "guard "+event+" "+phase)
			}
		}
		for _, seen := range tr.all() {
			require.NotRegexp(t, `initialize|ping|discover|notifications`, seen, "which are no events")
		}
	})
}

// A client sends requests and receives results, a server the other way round:
// when sending mutators come first, when receiving validators do.
func TestTheSideSetsTheDirection(t *testing.T) {
	sides(t, func(t *testing.T, at side) {
		tr := newTrail(t, gateway.ChainOptions{})
		session := at.connect(t, tr, &world{}, middleware.Options{})
		_, err := say(session, "ask", "")
		require.NoError(t, err)
		sending := func(event, phase string) bool {
			all := tr.all()
			return slices.Index(all, "hide "+event+" "+phase) < slices.Index(all, "guard "+event+" "+phase)
		}
		require.Equal(t, at.client, sending("tools/call", "request"))
		require.Equal(t, !at.client, sending("tools/call", "response"))
		require.Equal(t, !at.client, sending("sampling/createMessage", "request"))
		require.Equal(t, at.client, sending("sampling/createMessage", "response"))
	})
}

func TestWhatIsBlockedIsAnErrorWithData(t *testing.T) {
	sides(t, func(t *testing.T, at side) {
		w := &world{}
		session := at.connect(t, newTrail(t, gateway.ChainOptions{}), w, middleware.Options{})
		_, err := say(session, "echo", "evil")
		blocked := blockedBy(t, err)
		require.EqualValues(t, abi.CodeInvalidParams, blocked.Code)
		require.Equal(t, "blocked by an interceptor", blocked.Message)
		require.Empty(t, w.all(), "the tool was not called")
		var data struct {
			Reason, Reference, Event, Phase, Interceptor string
			MayHaveRun                                   bool
			Messages                                     []abi.Message
		}
		require.NoError(t, json.Unmarshal(blocked.Data, &data))
		require.Equal(t, "validation_failed", data.Reason)
		require.Equal(t, "tools/call", data.Event)
		require.Equal(t, "request", data.Phase)
		require.NotEmpty(t, data.Reference)
		require.False(t, data.MayHaveRun)
		if at.client {
			require.Equal(t, "guard", data.Interceptor, "shown to the program that the chain guards")
			require.Len(t, data.Messages, 1)
		} else {
			require.Empty(t, data.Interceptor, "not shown to the peer")
			require.Empty(t, data.Messages)
		}

		_, err = say(session, "curse", "")
		require.NoError(t, json.Unmarshal(blockedBy(t, err).Data, &data))
		require.Equal(t, "response", data.Phase)
		require.True(t, data.MayHaveRun)

		// What the server asks for: of the model, and inside a result.
		_, err = say(session, "ask", "evi"+"l")
		require.Error(t, err)
		require.Equal(t, []string{"curse "}, w.all())
	})
}

// A request inside a result is blocked before anybody answers it, and so is an
// answer before the server sees it.
func TestNoWayRoundThroughInputRequiredResults(t *testing.T) {
	sides(t, func(t *testing.T, at side) {
		asked := 0
		tr, w := newTrail(t, gateway.ChainOptions{Events: []string{"sampling/createMessage"}}), &world{}
		opts := people()
		answer := "fine"
		opts.CreateMessageHandler = nil
		opts.CreateMessageWithToolsHandler = modelThatSays(&asked, &answer)
		server := w.server(t)
		var client *mcp.Client
		if at.client {
			client = middleware.NewClient(&mcp.Implementation{Name: "client"}, opts, tr.chain, middleware.Options{})
		} else {
			middleware.GovernServer(server, tr.chain, middleware.Options{})
			client = mcp.NewClient(&mcp.Implementation{Name: "client"}, opts)
		}
		session := connect(t, at.how, at.version, client, server)

		_, err := say(session, "ask", "evil")
		require.ErrorContains(t, err, "blocked by an interceptor")
		require.Zero(t, asked, "nobody answered")
		if at.version == statelessEra {
			require.Contains(t, string(blockedBy(t, err).Data), `"event":"sampling/createMessage","phase":"request"`)
			require.Contains(t, string(blockedBy(t, err).Data), `"mayHaveRun":true`, "the tool did something before it asked")
		}

		said, err := say(session, "ask", "well?")
		require.NoError(t, err)
		require.Equal(t, "fine", said)
		require.Equal(t, 1, asked)

		answer = "evil"
		before := len(w.all())
		_, err = say(session, "ask", "well?")
		require.ErrorContains(t, err, "blocked by an interceptor")
		require.Equal(t, 2, asked)
		require.Len(t, w.all(), before+1, "the tool was not called with the answer")
	})
}

func TestAServerThatAsksForEverIsGivenUp(t *testing.T) {
	tr, w := newTrail(t, gateway.ChainOptions{}), &world{}
	session := side{client: true, how: "memory", version: statelessEra}.connect(t, tr, w, middleware.Options{})
	_, err := say(session, "insatiable", "")
	require.ErrorContains(t, err, "asked for input 10 times")
	require.Len(t, w.all(), 10)
	_, err = say(session, "busy", "")
	require.ErrorContains(t, err, "asked for input 3 times")
	require.Len(t, w.all(), 13)
}

// With MultiRoundTrip disabled the caller answers by itself: its retries are
// governed all the same.
func TestRetriesOfTheCallersOwnAreGoverned(t *testing.T) {
	tr, w := newTrail(t, gateway.ChainOptions{}), &world{}
	opts := people()
	opts.MultiRoundTrip = &mcp.MultiRoundTripOptions{Disabled: true}
	session := connect(t, "memory", statelessEra, middleware.NewClient(&mcp.Implementation{Name: "client"}, opts, tr.chain, middleware.Options{}), w.server(t))
	params := &mcp.CallToolParams{Name: "ask", Arguments: map[string]any{"text": "a secret"}}
	res, err := session.CallTool(t.Context(), params)
	require.NoError(t, err)
	require.True(t, res.NeedsInput())
	question := res.InputRequests["m"].(*mcp.CreateMessageWithToolsParams)
	require.Equal(t, "a ******", question.Messages[0].Content[0].(*mcp.TextContent).Text)
	require.Equal(t, "kept", res.RequestState)

	answer := &mcp.CreateMessageWithToolsResult{Role: "assistant", Model: "m", Content: text("the secret")}
	params.InputResponses, params.RequestState = mcp.InputResponseMap{"m": answer}, res.RequestState
	res, err = session.CallTool(t.Context(), params)
	require.NoError(t, err)
	require.Equal(t, "the ******", res.Content[0].(*mcp.TextContent).Text)
	require.Equal(t, "the secret", answer.Content[0].(*mcp.TextContent).Text, "what the caller gave is the caller's")

	answer.Content = text("evil")
	_, err = session.CallTool(t.Context(), params)
	require.ErrorContains(t, err, "blocked by an interceptor")
}

func TestAListBehindAMutatorIsNotCached(t *testing.T) {
	sides(t, func(t *testing.T, at side) {
		if at.version == sessionEra {
			return // it knows no caching
		}
		session := at.connect(t, newTrail(t, gateway.ChainOptions{}), &world{}, middleware.Options{})
		tools, err := session.ListTools(t.Context(), nil)
		require.NoError(t, err)
		require.Equal(t, "private", tools.CacheScope)
		require.Zero(t, tools.TTLMs)
	})
}

func TestWhatNobodyGovernsIsNotTouched(t *testing.T) {
	tr, w := newTrail(t, gateway.ChainOptions{Events: []string{"prompts/get"}}), &world{}
	session := side{client: true, how: "memory", version: sessionEra}.connect(t, tr, w, middleware.Options{})
	said, err := say(session, "echo", "an evil secret")
	require.NoError(t, err)
	require.Equal(t, "heard an evil secret", said)
	require.Empty(t, tr.all())
}

func TestSubscriptionsAreGoverned(t *testing.T) {
	for _, client := range []bool{true, false} {
		t.Run(map[bool]string{true: "client", false: "server"}[client], func(t *testing.T) {
			tr := newTrail(t, gateway.ChainOptions{})
			session := side{client: client, how: "memory", version: sessionEra}.connect(t, tr, &world{}, middleware.Options{})
			require.NoError(t, session.Subscribe(t.Context(), &mcp.SubscribeParams{URI: "file:///a"}))
			require.Contains(t, tr.all(), "guard resources/subscribe request")
			require.Contains(t, tr.all(), "guard resources/subscribe response")
			require.ErrorContains(t, session.Subscribe(t.Context(), &mcp.SubscribeParams{URI: "file:///evil"}), "blocked by an interceptor")
		})
	}
}

// The default context, the server's identity and what a resolver adds are the
// chain's options, on either side.
func TestTheChainsOptionsHold(t *testing.T) {
	sides(t, func(t *testing.T, at side) {
		for given, want := range map[string]string{"": "world", "theirs": "theirs"} {
			if given == "" && !at.client {
				continue // a server knows by itself who it is
			}
			t.Run("server "+want, func(t *testing.T) {
				var mu sync.Mutex
				var servers []string
				tr := newTrail(t, gateway.ChainOptions{
					Events: []string{"tools/*"}, Server: given,
					Context: &abi.Context{Principal: &abi.Principal{Type: abi.PrincipalService, ID: "default"}},
					Resolver: func(_ context.Context, op *gateway.Operation, c *abi.Context) (gateway.Resolved, error) {
						mu.Lock()
						defer mu.Unlock()
						servers = append(servers, op.Server+" for "+c.Principal.ID)
						return gateway.Resolved{}, nil
					},
				})
				session := at.connect(t, tr, &world{}, middleware.Options{})
				_, err := say(session, "echo", "hi")
				require.NoError(t, err)
				mu.Lock()
				defer mu.Unlock()
				require.Equal(t, []string{want + " for default"}, slices.Compact(servers))
			})
		}
	})
}

// What may have a say and is not there blocks.
func TestAHostThatIsDownBlocks(t *testing.T) {
	sides(t, func(t *testing.T, at side) {
		quiet := slog.New(slog.DiscardHandler)
		down := hosts.HTTP("down", hosts.Endpoint{URL: "http://127.0.0.1:1/mcp"}, hosts.Options{Logger: quiet})
		c, err := gateway.NewChain(gateway.ChainOptions{Hosts: hosts.NewSet([]*hosts.Host{down}, hosts.SetOptions{}), Events: []string{"tools/call"}, Logger: quiet})
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, c.Close(context.Background())) })
		w := &world{}
		session := at.connect(t, &trail{chain: c}, w, middleware.Options{})
		_, err = say(session, "echo", "hi")
		blocked := blockedBy(t, err)
		require.EqualValues(t, abi.CodeInternal, blocked.Code)
		require.Contains(t, string(blocked.Data), `"reason":"discovery_failed"`)
		require.NotContains(t, blocked.Message+string(blocked.Data), "127.0.0.1")
		require.Empty(t, w.all())
	})
}

func TestHammer(t *testing.T) {
	sides(t, func(t *testing.T, at side) {
		tr, w := newTrail(t, gateway.ChainOptions{}), &world{}
		session := at.connect(t, tr, w, middleware.Options{})
		var all errgroup.Group
		for i := range 8 {
			all.Go(func() error {
				for j := range 10 {
					word := fmt.Sprint(i, " ", j)
					switch said, err := say(session, "echo", word+" secret"); {
					case err != nil:
						return err
					case said != "heard "+word+" ******":
						return fmt.Errorf("%s: %q", word, said)
					}
					if _, err := say(session, "echo", "evil"); err == nil {
						return errors.New("evil passed")
					}
				}
				return nil
			})
		}
		require.NoError(t, all.Wait())
		require.Len(t, w.all(), 80)
	})
}
