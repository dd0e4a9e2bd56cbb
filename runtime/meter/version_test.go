package meter_test

import (
	"crypto/sha256"
	"encoding/hex"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-mcp/weir/runtime/meter"
)

// What is kept on disk is found by [meter.Version], so a rewriting that changes
// must not go by the old one: modules would run as an earlier weir rewrote them,
// checks that were mended since included.
func TestWhatIsRewrittenChangesWithTheVersionOnly(t *testing.T) {
	const (
		version = 3
		digest  = "6a1c8d3d8fb93efb16937d399bf1b51401d6afbaa0a7120eb1741818742fd1f7"
	)
	hash := sha256.New()
	add := func(b []byte) {
		r, _ := rewritten(t, b, generous)
		hash.Write(r.Binary)
	}
	add(bulkModule())
	for seed := range uint64(100) {
		add(generate(seed))
	}
	require.Equal(t, version, meter.Version, "enter the new version here, and the digest that this test then gives")
	require.Equal(t, digest, hex.EncodeToString(hash.Sum(nil)),
		"the same modules are rewritten in another way: raise meter.Version, or caches go on giving what the last version made")
}
