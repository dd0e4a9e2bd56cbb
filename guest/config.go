package guest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
)

// Defaulter is a config type, or a pointer to one, that fills in what the
// operator left out: SetDefaults runs on the zero value before the config is
// decoded over it.
type Defaulter interface{ SetDefaults() }

// Checker is a config type, or a pointer to one, that can refuse what a schema
// cannot express. Check runs after the config is decoded, before the handler;
// its error is a failure of the call.
type Checker interface{ Check() error }

// decodeConfig decodes raw into c, a pointer to the author's type.
func decodeConfig(raw json.RawMessage, c any, strict bool) error {
	if d, ok := c.(Defaulter); ok {
		d.SetDefaults()
	}
	if raw != nil {
		dec := json.NewDecoder(bytes.NewReader(raw))
		if strict {
			dec.DisallowUnknownFields()
		}
		if err := dec.Decode(c); err != nil {
			return fmt.Errorf("config: %w", err)
		}
		if _, err := dec.Token(); err != io.EOF {
			return fmt.Errorf("config: something follows the object")
		}
	}
	if check, ok := c.(Checker); ok {
		if err := check.Check(); err != nil {
			return fmt.Errorf("config: %w", err)
		}
	}
	return nil
}
