package chain

import (
	"errors"
	"fmt"

	"github.com/weir-mcp/weir/abi"
)

// Admits says why a host of our own must not take an interceptor into service,
// or nil: policy would widen its hooks, or those of a copy of it (protocol.md §5,
// Discovery failure). The error names each entry that would. What policy
// disables or does not serve under its own name is none of its business.
//
// Whoever hosts others' interceptors cannot refuse them; there the step fails
// ([Step.Refused]). So it does where an entry disagrees with what is listed in
// another way, such as its type: that is no reason to do without a guard.
func (p *Policy) Admits(host string, d *abi.Descriptor) error {
	if p == nil {
		return nil
	}
	var errs []error
	check := func(name string, rs rules) {
		if m := rs.enabled(); m.set && !m.value {
			return
		}
		if err := rs.refuseHooks(d); err != nil {
			errs = append(errs, fmt.Errorf("interceptor %q: %w", name, err))
		}
	}
	copies := p.copiesOf(d.Name, host)
	if len(copies) == 0 || p.servesOriginal(d.Name, host) {
		check(d.Name, p.forOriginal(d.Name, host))
	}
	for _, a := range copies {
		check(a.as, p.forCopy(a, host))
	}
	return errors.Join(errs...)
}
