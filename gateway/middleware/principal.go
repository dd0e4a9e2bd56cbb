package middleware

import (
	"encoding/json"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/weir-mcp/weir/abi"
)

// tokenPrincipal is the user of a bearer token that the SDK's verifier accepted.
// A token without one names nobody: whoever takes two of those for one principal
// would let them share what is kept for it. Its claims are what the verifier put
// into Extra, and "scope" (RFC 9068), of which [gateway.ChainOptions] lets some
// travel.
func tokenPrincipal(extra *mcp.RequestExtra) *abi.Principal {
	if extra == nil || extra.TokenInfo == nil || extra.TokenInfo.UserID == "" {
		return nil
	}
	token := extra.TokenInfo
	p := &abi.Principal{Type: abi.PrincipalUser, ID: token.UserID}
	claims := make(map[string]any, len(token.Extra)+1)
	if len(token.Scopes) > 0 {
		claims["scope"] = strings.Join(token.Scopes, " ")
	}
	for name, v := range token.Extra {
		claims[name] = v
	}
	if len(claims) == 0 {
		return p
	}
	if raw, err := json.Marshal(claims); err == nil {
		p.Claims = raw
	}
	return p
}
