package expose

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestRoute(t *testing.T) {
	const limit = 100
	for _, c := range []struct {
		name, method, body string
		interceptors       bool
	}{
		{"list", http.MethodPost, `{"jsonrpc":"2.0","id":1,"method":"interceptors/list"}`, true},
		{"invoke", http.MethodPost, `{"jsonrpc":"2.0","id":1,"method":"interceptor/invoke","params":{}}`, true},
		{"a method of the backend's", http.MethodPost, `{"jsonrpc":"2.0","id":1,"method":"tools/call"}`, false},
		{"a method with such an end", http.MethodPost, `{"jsonrpc":"2.0","id":1,"method":"x/interceptors/list"}`, false},
		{"the name in params only", http.MethodPost, `{"jsonrpc":"2.0","id":1,"method":"x","params":{"method":"interceptors/list"}}`, false},
		{"an answer", http.MethodPost, `{"jsonrpc":"2.0","id":1,"result":{"method":"interceptors/list"}}`, false},
		{"two methods", http.MethodPost, `{"jsonrpc":"2.0","id":1,"method":"interceptors/list","method":"tools/call"}`, false},
		{"a batch", http.MethodPost, `[{"jsonrpc":"2.0","id":1,"method":"interceptors/list"}]`, false},
		{"no JSON", http.MethodPost, `{"jsonrpc":"2.0","id":1,"method":"interceptors/list"`, false},
		{"too large", http.MethodPost, `{"jsonrpc":"2.0","id":1,"method":"interceptors/list","params":{"a":"` + strings.Repeat("x", limit) + `"}}`, false},
		{"nothing", http.MethodPost, ``, false},
		{"a stream", http.MethodGet, ``, false},
		{"the end of a session", http.MethodDelete, ``, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			handler := func(name string) http.Handler {
				return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					body, err := io.ReadAll(r.Body)
					require.NoError(t, err)
					require.Equal(t, c.body, string(body), "as it came")
					require.NoError(t, r.Body.Close())
					_, _ = io.WriteString(w, name)
				})
			}
			w := httptest.NewRecorder()
			Route(handler("interceptors"), handler("rest"), limit).ServeHTTP(w, httptest.NewRequest(c.method, "/mcp", strings.NewReader(c.body)))
			require.Equal(t, map[bool]string{true: "interceptors", false: "rest"}[c.interceptors], w.Body.String())
		})
	}
}

func TestRoute_passesOnThatABodyBroke(t *testing.T) {
	broken := errors.New("the connection is gone")
	rest := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		require.Equal(t, `{"method":"interceptors/list"`, string(body))
		require.ErrorIs(t, err, broken)
	})
	never := http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("it has no whole message") })
	r := httptest.NewRequest(http.MethodPost, "/mcp", io.MultiReader(strings.NewReader(`{"method":"interceptors/list"`), failing{broken}))
	Route(never, rest, 100).ServeHTTP(httptest.NewRecorder(), r)
}
