// Package caller carries who makes an HTTP request from the door that has
// authenticated them to the rooms behind it. It knows nothing of how that is
// done, and of what the rooms make of it.
//
//	r = r.WithContext(caller.With(r.Context(), principal))
//	…
//	principal := caller.From(r.Context()) // nil: nobody was authenticated
package caller

import (
	"context"

	"github.com/weir-mcp/weir/abi"
)

type key struct{}

// With gives a context that carries the caller. It must not be changed from then
// on.
func With(ctx context.Context, p *abi.Principal) context.Context {
	return context.WithValue(ctx, key{}, p)
}

// From is the caller that was authenticated, nil for none.
func From(ctx context.Context) *abi.Principal {
	p, _ := ctx.Value(key{}).(*abi.Principal)
	return p
}

// Name tells callers apart: two with the same name are one. It is empty for
// nobody.
func Name(p *abi.Principal) string {
	if p == nil {
		return ""
	}
	return p.Type + ":" + p.ID
}
