package server

import (
	"bytes"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// params keeps the bytes of the params object, so that our own reader reads
// them and not the SDK's decoder, which takes the last of two equal members and
// answers a type mismatch with the name of a Go type.
type params struct {
	mcp.ParamsBase
	raw []byte
}

// UnmarshalJSON stores a copy.
func (p *params) UnmarshalJSON(raw []byte) error {
	p.raw = bytes.Clone(raw)
	return nil
}

// bytes is nil where there were no params.
func (p *params) bytes() []byte {
	if p == nil {
		return nil
	}
	return p.raw
}

// result is a result that is written already. What the SDK would add to it,
// such as its _meta in the stateless protocol, it does not take.
type result struct {
	mcp.ResultBase
	raw []byte
}

// MarshalJSON gives the bytes as they are.
func (r *result) MarshalJSON() ([]byte, error) { return r.raw, nil }

// GetMeta says that there is none.
func (r *result) GetMeta() map[string]any { return nil }

// SetMeta takes none.
func (r *result) SetMeta(map[string]any) {}
