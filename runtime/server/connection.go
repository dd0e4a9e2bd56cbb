package server

import (
	"context"
	"crypto/rand"
)

type connectionKey struct{}

// withConnection gives a connection a name, for callers who have no other (abi.md,
// grant kv: a stdio connection counts as a session). HTTP has none: its requests
// have nothing in common that a caller could not choose.
func withConnection(ctx context.Context) context.Context {
	return context.WithValue(ctx, connectionKey{}, rand.Text())
}

// connectionOf is the name, empty where there is none.
func connectionOf(ctx context.Context) string {
	name, _ := ctx.Value(connectionKey{}).(string)
	return name
}
