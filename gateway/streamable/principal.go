package streamable

import "github.com/weir-mcp/weir/abi"

// principalKey names a principal; nobody who has been asked is one, too.
func principalKey(p *abi.Principal) string {
	if p == nil {
		return ""
	}
	return p.Type + "\x00" + p.ID
}

func samePrincipal(a, b *abi.Principal) bool { return principalKey(a) == principalKey(b) }
