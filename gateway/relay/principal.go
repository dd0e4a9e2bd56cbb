package relay

import (
	"context"

	"github.com/weir-mcp/weir/abi"
)

type principalKey struct{}

// WithPrincipal gives a context that says who is calling. Whoever has checked
// that, in front of a transport of the relay, puts it into the request's context;
// the session is bound to it, and operations carry it.
func WithPrincipal(ctx context.Context, p *abi.Principal) context.Context {
	return context.WithValue(ctx, principalKey{}, p)
}

// PrincipalFrom gives who is calling, or nil where nobody has been asked.
func PrincipalFrom(ctx context.Context) *abi.Principal {
	p, _ := ctx.Value(principalKey{}).(*abi.Principal)
	return p
}
