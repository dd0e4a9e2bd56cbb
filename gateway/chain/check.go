package chain

import (
	"errors"
	"fmt"

	"github.com/weir-mcp/weir/abi"
	"github.com/weir-mcp/weir/internal/wire"
)

// checkResult says what is malformed about an answer, or nil (protocol.md §5,
// Malformed results).
func checkResult(s *Step, inv *abi.Invocation, r *abi.Result) error {
	switch {
	case r.Type != s.Type:
		return fmt.Errorf("a %s answered with a result of type %q", s.Type, r.Type)
	case r.Interceptor != inv.Name:
		return fmt.Errorf("the result names another interceptor, %q", r.Interceptor)
	case r.Phase != inv.Phase:
		return fmt.Errorf("the result names another phase, %q", r.Phase)
	}
	if r.Type != abi.Mutation {
		return nil
	}
	if !r.Modified {
		if len(r.Payload) > 0 && !wire.Equal(r.Payload, inv.Payload) {
			return errors.New("modified is false, yet the payload differs from the input")
		}
		return nil
	}
	if len(r.Payload) == 0 {
		return errors.New("modified is true, yet there is no payload")
	}
	if err := wire.Strict(r.Payload); err != nil {
		return fmt.Errorf("the payload: %w", err)
	}
	return checkShape(inv.Event, inv.Phase, r.Payload, inv.Payload)
}
