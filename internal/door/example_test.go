package door_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/weir-mcp/weir/abi"
	"github.com/weir-mcp/weir/internal/door"
)

type callerKey struct{}

func Example() {
	tokens, err := door.NewTokens(door.Token{Name: "ci", Secret: "s3cret"})
	if err != nil {
		panic(err)
	}
	d := door.New(door.Options{
		Authenticator: tokens, Concurrency: 256,
		Known: func(ctx context.Context, p *abi.Principal) context.Context {
			return context.WithValue(ctx, callerKey{}, p.ID)
		},
	})
	handler := d.Guard(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintln(w, "hello,", r.Context().Value(callerKey{}))
	}))

	for _, token := range []string{"s3cret", "guess"} {
		r := httptest.NewRequest(http.MethodPost, "/mcp", nil)
		r.Header.Set("Authorization", "Bearer "+token)
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		fmt.Print(w.Code, " ", w.Body.String())
	}
	// Output:
	// 200 hello, ci
	// 401 Unauthorized
}
