package abi

import (
	"errors"
	"fmt"
	"time"
)

// Compat is the range of MCP protocol versions (dates such as "2025-11-25") in
// which an interceptor makes sense. MaxProtocol may be empty: no upper end.
type Compat struct {
	MinProtocol string
	MaxProtocol string
}

// Includes reports whether version lies in the range. Of a version that is not
// known ("") it says yes: an interceptor too many is safer than one too few.
func (c *Compat) Includes(version string) bool {
	if c == nil || version == "" {
		return true
	}
	return version >= c.MinProtocol && (c.MaxProtocol == "" || version <= c.MaxProtocol)
}

func (c *Compat) validate() error {
	if c == nil {
		return nil
	}
	if err := validateDate(keyMinProtocol, c.MinProtocol); err != nil {
		return err
	}
	if c.MaxProtocol == "" {
		return nil
	}
	if err := validateDate(keyMaxProtocol, c.MaxProtocol); err != nil {
		return err
	}
	if c.MaxProtocol < c.MinProtocol {
		return errors.New("compat: maxProtocol is below minProtocol")
	}
	return nil
}

func validateDate(key, date string) error {
	if _, err := time.Parse(time.DateOnly, date); err != nil {
		return fmt.Errorf("compat.%s: %q is not a protocol version such as 2025-11-25", key, date)
	}
	return nil
}

func readCompat(raw []byte) (*Compat, error) {
	m, err := readObject(raw)
	if err != nil {
		return nil, fmt.Errorf("compat: %w", err)
	}
	c := &Compat{}
	if c.MinProtocol, _, err = m.string(keyMinProtocol); err != nil {
		return nil, fmt.Errorf("compat: %w", err)
	}
	if c.MaxProtocol, _, err = m.string(keyMaxProtocol); err != nil {
		return nil, fmt.Errorf("compat: %w", err)
	}
	return c, nil
}
