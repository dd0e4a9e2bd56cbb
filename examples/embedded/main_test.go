package main

import (
	"bytes"
	"context"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-mcp/weir/abi"
	"github.com/weir-mcp/weir/examples/internal/moduletest"
	"github.com/weir-mcp/weir/gateway"
	"github.com/weir-mcp/weir/gateway/hosts"
	"github.com/weir-mcp/weir/internal/leak"
)

var quiet = slog.New(slog.DiscardHandler)

func TestItDoesWhatItsManualPageShows(t *testing.T) {
	leak.Goroutines(t, "weir/gateway.", "weir/gateway/chain.", "weir/gateway/hosts.", "weir/examples/embedded.(")
	t.Cleanup(http.DefaultClient.CloseIdleConnections)
	var out bytes.Buffer
	require.NoError(t, run(t.Context(), &out, quiet))
	require.Equal(t, moduletest.Console(t, "go run ./examples/embedded"), out.String())
}

func TestEachOrganisationHasItsOwnHosts(t *testing.T) {
	north := &ruleServer{url: "http://127.0.0.1:1/mcp", token: "t", log: quiet}
	all := organisations{"north": north}
	of := func(u user) *abi.Context {
		return &abi.Context{Principal: &abi.Principal{Type: abi.PrincipalUser, ID: u.name, Claims: claims(u)}}
	}
	for _, c := range []struct {
		name, want string
		user       user
	}{
		{"one with a server", "north", user{"ann", "north"}},
		{"another of them shares it", "north", user{"abe", "north"}},
		{"one without", "", user{"ben", "south"}},
		{"one of none", "", user{"cat", ""}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := all.resolve(t.Context(), &gateway.Operation{}, of(c.user))
			require.NoError(t, err)
			require.Equal(t, c.want, got.Key)
			require.Equal(t, c.want != "", got.Open != nil)
		})
	}
	_, err := all.resolve(t.Context(), &gateway.Operation{}, &abi.Context{})
	require.ErrorContains(t, err, "nobody is signed in")
}

// An organisation's server that does not answer, or does not know this program,
// blocks what its people do, and nothing else.
func TestAnOrganisationsServerThatIsDown(t *testing.T) {
	up, err := serveRules(quiet)
	require.NoError(t, err)
	defer up.close()
	house, err := houseRules()
	require.NoError(t, err)
	for name, north := range map[string]*ruleServer{
		"down":          {url: "http://127.0.0.1:1/mcp", token: up.token, log: quiet},
		"another token": {url: up.url, token: up.token + "x", log: quiet},
	} {
		t.Run(name, func(t *testing.T) {
			c, err := gateway.NewChain(gateway.ChainOptions{
				Hosts:    hosts.NewSet([]*hosts.Host{hosts.InProcess("house", house, hosts.Options{Logger: quiet})}, hosts.SetOptions{}),
				Resolver: organisations{"north": north}.resolve,
				Logger:   quiet,
			})
			require.NoError(t, err)
			defer c.Close(context.WithoutCancel(t.Context()))
			status := func(u user) abi.Status {
				out := c.Execute(t.Context(), gateway.Operation{Event: abi.ToolsCall, Payload: []byte(`{"name":"look-up"}`),
					Context: &abi.Context{Principal: &abi.Principal{Type: abi.PrincipalUser, ID: u.name, Claims: claims(u)}}})
				return out.Status
			}
			require.Equal(t, abi.StatusDiscoveryFailed, status(user{"ann", "north"}))
			require.Equal(t, abi.StatusSuccess, status(user{"ben", "south"}))
		})
	}
}

func TestNobodySeesTheClaims(t *testing.T) {
	var log strings.Builder
	require.NoError(t, run(t.Context(), &bytes.Buffer{}, slog.New(slog.NewTextHandler(&log, nil))))
	require.NotContains(t, log.String(), "organisation")
	require.Contains(t, log.String(), "user:ann")
}
