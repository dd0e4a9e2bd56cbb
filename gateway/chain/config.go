package chain

import (
	"encoding/json"
	"fmt"
	"sync"

	"github.com/weir-mcp/weir/abi"
)

// ConfigCheck says why a config is not of the configSchema of an interceptor, or
// nil. It is a pure function of the two. Where the error wraps an [*abi.Error],
// calls fail with its reason.
type ConfigCheck func(d *abi.Descriptor, config json.RawMessage) error

// CheckConfigs gives a policy that is p in all else and holds each config against
// the schema of its interceptor (config.md): one that does not fit is refused, so
// that its step fails without a call ([Step.Refused]). Without it that is left
// to hosts, of which those of other teams may not look.
func (p *Policy) CheckConfigs(check ConfigCheck) *Policy {
	c := Policy{}
	if p != nil {
		c = *p
	}
	c.configs = &configCheck{check: check, known: map[checkedConfig]error{}}
	return &c
}

// configCheck remembers what a check has said, since one config is checked for
// every plan that its interceptor is part of.
type configCheck struct {
	check ConfigCheck
	mu    sync.Mutex
	known map[checkedConfig]error
}

type checkedConfig struct{ name, schema, config string }

// mostChecked bounds what is remembered: schemas are a host's words.
const mostChecked = 1024

func (c *configCheck) refuse(d *abi.Descriptor, m member[config]) error {
	if c == nil || !m.set {
		return nil
	}
	key := checkedConfig{d.Name, string(d.ConfigSchema), string(m.value.value)}
	c.mu.Lock()
	err, ok := c.known[key]
	c.mu.Unlock()
	if !ok {
		err = c.check(d, m.value.value)
		c.mu.Lock()
		if len(c.known) >= mostChecked {
			clear(c.known)
		}
		c.known[key] = err
		c.mu.Unlock()
	}
	if err != nil {
		return fmt.Errorf("its config in the entry at %s is refused: %w", m.source, err)
	}
	return nil
}
