package hosts

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-mcp/weir/abi"
)

func TestRemote_lists(t *testing.T) {
	for kind, want := range map[string]struct {
		names   []string
		skipped []string
		err     string
	}{
		"plain":              {names: []string{"guard"}},
		"pages":              {names: []string{"guard", "on page two"}},
		"endless":            {err: "page 2 of its list names a cursor that came before"},
		"bad hint":           {names: []string{"a", "b", "c", "d"}, skipped: []string{"odd", "a"}},
		"no list":            {err: "is no interceptor server"},
		"duplicates in list": {err: "duplicate member name"},
	} {
		t.Run(kind, func(t *testing.T) {
			over(t, kind, Options{}, func(t *testing.T, h *Host) {
				found, err := h.source.list(t.Context())
				if want.err != "" {
					require.ErrorContains(t, err, want.err)
					return
				}
				require.NoError(t, err)
				var names, skipped []string
				for _, d := range found.interceptors {
					names = append(names, d.Name)
				}
				for _, s := range found.skipped {
					skipped = append(skipped, s.Name)
				}
				require.Equal(t, want.names, names)
				require.Equal(t, want.skipped, skipped)
			})
		})
	}
}

func TestRemote_listHasAnEnd(t *testing.T) {
	h := HTTP("remote", Endpoint{URL: serveHTTP(t, scripts["many pages"], true).URL}, Options{})
	defer h.close(t.Context())
	_, err := h.source.list(t.Context())
	require.ErrorContains(t, err, "more than 1000 pages")
}

// untouched: what goes to an interceptor and what comes back keeps its spelling.
func TestRemote_tokensStay(t *testing.T) {
	payload := `{"n":9007199254740993,"f":1.0,"e":1e400,"h":"<>&","u":"\u00e9\ud83d\ude00\/","z":-0,"nested":{"b":1,"a":[2.50]}}`
	over(t, "echo", Options{}, func(t *testing.T, h *Host) {
		inv := invocation(payload)
		inv.Config = json.RawMessage(`{"limit":1.50,"mark":"<&>"}`)
		inv.Timeout = 1500 * time.Microsecond * 10_000
		inv.Request = json.RawMessage(`{"secret":"never travels"}`)
		inv.Context = &abi.Context{SessionID: "s", Principal: &abi.Principal{Type: abi.PrincipalUser, ID: "u<1>"}}
		r, err := h.Invoke(t.Context(), inv)
		require.NoError(t, err)
		got := string(r.Info)
		want := string(inv.AppendJSON(nil))
		require.True(t, strings.HasPrefix(got, strings.TrimSuffix(want, "}")), got)
		require.Contains(t, got, `"timeoutMs":15000`)
		require.NotContains(t, got, "never travels")
	})
}

func TestRemote_envelope(t *testing.T) {
	for _, c := range []struct {
		phase   abi.Phase
		sent    string
		payload string
	}{
		{abi.Request, `{"method":"tools/call","params":{"n":1.0}}`, `{"n":1.0}`},
		{abi.Response, `{"n":1.0}`, `{"n":1.0}`},
	} {
		t.Run(string(c.phase), func(t *testing.T) {
			over(t, "mirror", Options{Envelope: true}, func(t *testing.T, h *Host) {
				inv := invocation(c.payload)
				inv.Phase = c.phase
				require.Contains(t, string(h.source.(*remote).params(inv)), `"payload":`+c.sent)
				r, err := h.Invoke(t.Context(), inv)
				require.NoError(t, err)
				require.Equal(t, c.payload, string(r.Payload))
			})
		})
	}
	t.Run("an answer without its envelope is none", func(t *testing.T) {
		over(t, "unwrapped", Options{Envelope: true}, func(t *testing.T, h *Host) {
			_, err := h.Invoke(t.Context(), invocation(`{}`))
			require.Equal(t, abi.ReasonBadOutput, failed(t, err).Reason)
		})
	})
}

func TestRemote_malformedAnswers(t *testing.T) {
	bad := []string{
		`{}`, `[]`, `1`, `"text"`, `{"type":"validation"}`,
		`{"type":"validation","interceptor":"guard","phase":"request"}`,
		`{"type":"validation","interceptor":"guard","phase":"request","valid":"yes"}`,
		`{"type":"validation","interceptor":"guard","phase":"request","valid":false,"valid":true}`,
		`{"type":"validation","interceptor":"guard","phase":"request","valid":true,"info":{"a":1,"a":2}}`,
		`{"type":"verdict","interceptor":"guard","phase":"request","valid":true}`,
	}
	over(t, "malformed", Options{}, func(t *testing.T, h *Host) {
		for _, answer := range bad {
			quoted, err := json.Marshal(answer)
			require.NoError(t, err)
			_, err = h.Invoke(t.Context(), invocation(string(quoted)))
			require.Equal(t, abi.ReasonBadOutput, failed(t, err).Reason, "%s: %v", answer, err)
		}
	})
}

func TestRemote_errorsOfTheHost(t *testing.T) {
	answers := []struct {
		code int
		data string
		want abi.Reason
	}{
		{-32000, `{"reason":"timeout","timeoutMs":50}`, abi.ReasonTimeout},
		{-32603, `{"reason":"timeout"}`, abi.ReasonTimeout},
		{-32603, `{"reason":"trap"}`, abi.ReasonTrap},
		{-32603, `{"reason":"no such reason"}`, abi.ReasonUnavailable},
		{-32603, `null`, abi.ReasonUnavailable},
		{-32602, `{"reason":"config","path":"limit"}`, abi.ReasonConfig},
		{-32602, `{"name":"guard"}`, abi.ReasonParams},
		{-32601, `null`, abi.ReasonUnavailable},
		{-32603, `{"reason":"guest","reason":"trap"}`, abi.ReasonUnavailable},
	}
	over(t, "fails", Options{}, func(t *testing.T, h *Host) {
		for _, c := range answers {
			_, err := h.Invoke(t.Context(), invocation(fmt.Sprintf(`{"code":%d,"message":"no","data":%s}`, c.code, c.data)))
			e := failed(t, err)
			require.Equal(t, c.want, e.Reason, "%d %s: %v", c.code, c.data, err)
			require.Equal(t, "guard", e.Interceptor)
			require.Equal(t, abi.Request, e.Phase)
		}
	})
}

func TestRemote_anAnswerTooLargeFailsItsOwnCallOnly(t *testing.T) {
	over(t, "big", Options{}, func(t *testing.T, h *Host) {
		_, err := h.Invoke(t.Context(), invocation(`"small"`))
		require.NoError(t, err)
		conn := h.source.(*remote).current()
		_, err = h.Invoke(t.Context(), invocation(`"big"`))
		require.Contains(t, []abi.Reason{abi.ReasonOutputTooLarge, abi.ReasonBadOutput, abi.ReasonUnavailable}, failed(t, err).Reason)
		_, err = h.Invoke(t.Context(), invocation(`"small"`))
		require.NoError(t, err)
		require.Same(t, conn, h.source.(*remote).current())
	})
}

func TestRemote_timeout(t *testing.T) {
	over(t, "slow", Options{}, func(t *testing.T, h *Host) {
		inv := invocation(`{}`)
		inv.Timeout = 30 * time.Millisecond
		_, err := h.Invoke(t.Context(), tiny(t, h))
		require.Error(t, err)
		_, err = h.Invoke(t.Context(), inv)
		e := failed(t, err)
		require.Equal(t, abi.ReasonTimeout, e.Reason)
		require.Equal(t, inv.Timeout, e.Limit)
	})
	t.Run("of the caller", func(t *testing.T) {
		over(t, "slow", Options{}, func(t *testing.T, h *Host) {
			ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
			defer cancel()
			_, err := h.Invoke(ctx, invocation(`{}`))
			require.Equal(t, abi.ReasonTimeout, failed(t, err).Reason)
			ctx, cancel = context.WithCancel(t.Context())
			cancel()
			_, err = h.Invoke(ctx, invocation(`{}`))
			require.Equal(t, abi.ReasonCancelled, failed(t, err).Reason)
		})
	})
}

// tiny connects first, so that the timeout under test is of the call.
func tiny(t *testing.T, h *Host) abi.Invocation {
	_, err := h.source.list(t.Context())
	require.NoError(t, err)
	inv := invocation(`{}`)
	inv.Timeout = time.Millisecond
	return inv
}

func TestRemote_callsRunConcurrently(t *testing.T) {
	over(t, "echo", Options{}, func(t *testing.T, h *Host) {
		var all sync.WaitGroup
		for i := range 32 {
			all.Go(func() {
				for j := range 5 {
					payload := fmt.Sprintf(`{"call":%d.0}`, i*100+j)
					r, err := h.Invoke(t.Context(), invocation(payload))
					if err != nil || !strings.Contains(string(r.Info), payload) {
						t.Errorf("%s: %v %s", payload, err, r.Info)
					}
				}
			})
		}
		all.Wait()
	})
}

// A wave costs one trip: calls do not wait for each other on the way.
func TestRemote_callsDoNotWaitForEachOther(t *testing.T) {
	over(t, "together", Options{}, func(t *testing.T, h *Host) {
		ctx, cancel := context.WithTimeout(t.Context(), soon)
		defer cancel()
		for range 3 {
			var all sync.WaitGroup
			for range crowd {
				all.Go(func() {
					if _, err := h.Invoke(ctx, invocation(`{}`)); err != nil {
						t.Error(err)
					}
				})
			}
			all.Wait()
		}
	})
}

func TestHTTP_headersGoToTheServerAndNowhereElse(t *testing.T) {
	var elsewhere, here sync.Map
	other := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		elsewhere.Store(r.Header.Get("Authorization"), true)
	}))
	defer other.Close()
	redirecting := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		here.Store(r.Header.Get("Authorization"), true)
		http.Redirect(w, r, other.URL, http.StatusTemporaryRedirect)
	}))
	defer redirecting.Close()
	h := HTTP("remote", Endpoint{URL: redirecting.URL, Headers: map[string]string{"Authorization": "Bearer s3cret"}}, Options{})
	defer h.close(t.Context())
	_, err := h.source.list(t.Context())
	require.Error(t, err)
	require.NotContains(t, err.Error(), "s3cret")
	_, got := here.Load("Bearer s3cret")
	require.True(t, got)
	elsewhere.Range(func(any, any) bool { t.Error("the redirect was followed"); return true })
}

func TestRemote_saysWhoItIs(t *testing.T) {
	for version, want := range map[string]string{"": "(devel)", "v1.2.3": "v1.2.3"} {
		t.Run(want, func(t *testing.T) {
			var said atomic.Pointer[string]
			inner := serveHTTP(t, scripts["plain"], true).Config.Handler
			web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				body, err := io.ReadAll(r.Body)
				if err != nil {
					t.Error(err)
				}
				text := string(body)
				said.CompareAndSwap(nil, &text)
				r.Body = io.NopCloser(bytes.NewReader(body))
				inner.ServeHTTP(w, r)
			}))
			defer web.Close()
			h := HTTP("remote", Endpoint{URL: web.URL}, Options{Version: version})
			defer h.close(t.Context())
			_, err := h.source.list(t.Context())
			require.NoError(t, err)
			require.Contains(t, *said.Load(), `{"name":"weir","version":"`+want+`"}`)
		})
	}
}

// The grace of a host outside of this package's tests, which shorten it.
func TestHost_graceIsTwoSeconds(t *testing.T) {
	require.Equal(t, 2*time.Second, Stdio("remote", Process{}, Options{}).grace)
}

func TestHTTP_badServers(t *testing.T) {
	for name, handler := range map[string]http.HandlerFunc{
		"an empty answer": func(w http.ResponseWriter, _ *http.Request) {},
		"a web page": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/html")
			fmt.Fprint(w, "<h1>It works!</h1>")
		},
		"no JSON": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprint(w, `{"jsonrpc":`)
		},
		"an endless answer": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			for r.Context().Err() == nil {
				if _, err := fmt.Fprint(w, strings.Repeat(" ", 1<<16)); err != nil {
					return
				}
			}
		},
		"an endless error": func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(http.StatusBadRequest)
			for r.Context().Err() == nil {
				if _, err := fmt.Fprint(w, strings.Repeat(" ", 1<<16)); err != nil {
					return
				}
			}
		},
		"an endless event": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			for r.Context().Err() == nil {
				if _, err := fmt.Fprint(w, "data: ", strings.Repeat("x", 1<<16)); err != nil {
					return
				}
			}
		},
		"unauthorised": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) },
	} {
		t.Run(name, func(t *testing.T) {
			web := httptest.NewServer(handler)
			defer web.Close()
			h := HTTP("remote", Endpoint{URL: web.URL}, Options{})
			defer h.close(t.Context())
			_, err := h.source.list(t.Context())
			require.Error(t, err)
		})
	}
}
