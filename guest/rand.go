package guest

import (
	"math/rand/v2"
	"sync"
)

var random struct {
	sync.Mutex
	seeded bool
	source rand.PCG
}

// Rand returns a generator that gives other numbers in every call.
//
// The top-level functions of math/rand and math/rand/v2 do not, and neither do
// hash/maphash seeds nor the order in which a map is ranged over: the Go
// runtime seeds them once, before the host captures the state that every call
// starts from (abi.md, Isolation), so they repeat from call to call. The host
// reseeds Rand before each invocation. Like them, Rand is not for secrets;
// crypto/rand asks the host each time and is.
//
// It is safe for concurrent use.
func Rand() *rand.Rand { return rand.New(lockedSource{}) }

type lockedSource struct{}

func (lockedSource) Uint64() uint64 {
	random.Lock()
	defer random.Unlock()
	if !random.seeded {
		random.source.Seed(rand.Uint64(), rand.Uint64())
		random.seeded = true
	}
	return random.source.Uint64()
}

// setSeed takes the host's seed. PCG wants two words; the second only has to
// differ from the first.
func setSeed(seed uint64) {
	random.Lock()
	defer random.Unlock()
	random.source.Seed(seed, ^seed)
	random.seeded = true
}
