package abi

import (
	"encoding/json"
	"errors"
	"fmt"
)

// Descriptor is what an interceptor server lists about one interceptor
// (protocol.md §2).
type Descriptor struct {
	// Name is unique in one host and not empty.
	Name        string
	Version     string
	Description string
	Type        Type
	Hooks       Hooks
	// Mode is the author's default; empty means Active.
	Mode Mode
	// FailOpen is the author's default: whether a failure (never a verdict)
	// lets the operation go on.
	FailOpen     bool
	PriorityHint PriorityHint
	// Compat is nil when every protocol version will do.
	Compat *Compat
	// ConfigSchema is a JSON Schema object with "type":"object", or nil.
	ConfigSchema json.RawMessage
}

// Validate reports the first thing that is wrong with d.
func (d *Descriptor) Validate() error {
	switch {
	case d.Name == "":
		return errors.New(`"name" is missing or empty`)
	case !d.Type.Valid():
		return fmt.Errorf("%q: type %q is none of validation, mutation and sink", d.Name, d.Type)
	case d.Mode != "" && d.Mode != Active && d.Mode != Audit:
		return fmt.Errorf("%q: mode %q is neither active nor audit", d.Name, d.Mode)
	case d.Type == Sink && d.Mode == Audit:
		return fmt.Errorf("%q: a sink has no audit mode, since it never blocks or changes anything", d.Name)
	}
	for _, err := range []error{d.Hooks.validate(), d.Compat.validate(), validateSchema(d.ConfigSchema)} {
		if err != nil {
			return fmt.Errorf("%q: %w", d.Name, err)
		}
	}
	return nil
}

func validateSchema(raw json.RawMessage) error {
	if raw == nil {
		return nil
	}
	m, err := readObject(raw)
	if err != nil {
		return fmt.Errorf("configSchema: %w", err)
	}
	if t, _, err := m.string(keyType); err != nil || t != "object" {
		return errors.New(`configSchema: "type" must be "object"`)
	}
	return nil
}

// ReadDescriptor reads one descriptor in any spelling that protocol.md §2 says
// a reader takes, and validates it. Mode is filled in. When it fails, the
// returned descriptor still carries the name if that could be read, so that
// the complaint can say whose it is.
func ReadDescriptor(raw []byte) (Descriptor, error) {
	var d Descriptor
	m, err := readObject(raw)
	if err != nil {
		return d, err
	}
	if d.Name, _, err = m.string(keyName); err != nil {
		return d, err
	}
	if err := d.read(m); err != nil {
		return d, fmt.Errorf("%q: %w", d.Name, err)
	}
	return d, d.Validate()
}

func (d *Descriptor) read(m object) (err error) {
	if d.Version, _, err = m.string(keyVersion); err != nil {
		return err
	}
	if d.Description, _, err = m.string(keyDescription); err != nil {
		return err
	}
	typ, _, err := m.string(keyType)
	if err != nil {
		return err
	}
	d.Type = Type(typ)
	if d.Hooks, err = readHooks(m); err != nil {
		return err
	}
	mode, _, err := m.string(keyMode)
	if err != nil {
		return err
	}
	if d.Mode = Mode(mode); mode == "" || mode == modeEnforce {
		d.Mode = Active
	}
	if d.FailOpen, _, err = m.bool(keyFailOpen); err != nil {
		return err
	}
	if raw, ok := m.get(keyPriorityHint); ok {
		if d.PriorityHint, err = ReadPriorityHint(raw); err != nil {
			return err
		}
	}
	if raw, ok := m.get(keyCompat); ok {
		if d.Compat, err = readCompat(raw); err != nil {
			return err
		}
	}
	if raw, ok := m.get(keyConfigSchema); ok {
		d.ConfigSchema = raw
	}
	return nil
}

// AppendJSON appends the canonical spelling of d: members in a fixed order,
// defaults and empty members left out (protocol.md §2).
func (d *Descriptor) AppendJSON(dst []byte) []byte {
	o := openObject(dst)
	o.string(keyName, d.Name)
	o.optString(keyVersion, d.Version)
	o.optString(keyDescription, d.Description)
	o.string(keyType, string(d.Type))
	o.b = d.Hooks.AppendJSON(o.key(keyHooks))
	if d.Mode == Audit {
		o.string(keyMode, string(d.Mode))
	}
	if d.FailOpen {
		o.bool(keyFailOpen, true)
	}
	if !d.PriorityHint.isDefault() {
		o.b = d.PriorityHint.AppendJSON(o.key(keyPriorityHint))
	}
	if d.Compat != nil {
		c := openObject(o.key(keyCompat))
		c.string(keyMinProtocol, d.Compat.MinProtocol)
		c.optString(keyMaxProtocol, d.Compat.MaxProtocol)
		o.b = c.close()
	}
	o.optRaw(keyConfigSchema, d.ConfigSchema)
	return o.close()
}

// MarshalJSON writes what [Descriptor.AppendJSON] appends.
func (d Descriptor) MarshalJSON() ([]byte, error) { return d.AppendJSON(nil), nil }

// UnmarshalJSON reads as [ReadDescriptor] does.
func (d *Descriptor) UnmarshalJSON(raw []byte) (err error) {
	*d, err = ReadDescriptor(raw)
	return err
}
