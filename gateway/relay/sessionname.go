package relay

import (
	"crypto/sha256"
	"encoding/hex"
)

// SessionName is what governors get to know, as [Options].Session, of a session
// whose id is a secret: to whoever has the Mcp-Session-Id of streamable HTTP the
// session belongs. It is the first half of its SHA-256 in hexadecimal, the same
// on every replica; empty for an empty id.
func SessionName(id string) string {
	if id == "" {
		return ""
	}
	sum := sha256.Sum256([]byte(id))
	return hex.EncodeToString(sum[:len(sum)/2])
}
