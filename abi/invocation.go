package abi

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// Invocation is one call of one interceptor (protocol.md §3).
type Invocation struct {
	Name    string
	Event   string
	Phase   Phase
	Payload json.RawMessage
	// Config is the configuration in force, an object, or nil.
	Config json.RawMessage
	// Timeout bounds the call, the wait for a free instance included. 0 is no
	// bound. On the wire it is whole milliseconds, at least 1.
	Timeout time.Duration
	Context *Context
	// Request is the request payload that a response answers, where the host
	// has it. It travels to modules (abi.md), and over interceptor/invoke in _meta
	// only, where the host's configuration says so (MetaRequest).
	Request json.RawMessage
	// Connection names, within this process, the connection or the command that
	// the invocation came by, where that stands for a session (abi.md, grant
	// kv); empty otherwise. It never travels, to modules neither.
	Connection string
	// Patient says that whoever invokes, in this process, bounds how many of its
	// calls wait: a module then lets them wait for as long as their context and
	// Timeout do, past its own queue, instead of refusing them as busy. It never
	// travels.
	Patient bool
}

// Context says on whose behalf an operation runs. Every member is optional.
type Context struct {
	Principal *Principal
	TraceID   string
	SpanID    string
	SessionID string
	Timestamp string // RFC 3339
}

// Principal is the caller of an operation.
type Principal struct {
	Type   string // "user", "service" or "anonymous"
	ID     string
	Claims json.RawMessage // an object, or nil
}

// The types of principals.
const (
	PrincipalUser      = "user"
	PrincipalService   = "service"
	PrincipalAnonymous = "anonymous"
)

// maxTimeoutMs keeps a timeout inside time.Duration's range with room to add.
const maxTimeoutMs = int64(365 * 24 * time.Hour / time.Millisecond)

// ReadInvocation reads the parameters of interceptor/invoke. A failure is an
// [*Error] with ReasonParams that names the interceptor where it could be read.
// Unknown members are ignored; "mode" and "failOpen" are the invoker's and are
// ignored too.
func ReadInvocation(raw []byte) (Invocation, error) {
	var inv Invocation
	if len(raw) == 0 {
		return inv, BadParams("", "", errors.New("params are missing"))
	}
	m, err := readObject(raw)
	if err != nil {
		return inv, BadParams("", "", err)
	}
	return readInvocation(m, keyName)
}

func readInvocation(m object, nameKey string) (inv Invocation, err error) {
	bad := func(path string, err error) (Invocation, error) {
		return Invocation{}, BadParams(inv.Name, path, err)
	}
	if inv.Name, _, err = m.string(nameKey); err != nil {
		return bad(nameKey, err)
	}
	if inv.Name == "" {
		return bad(nameKey, errors.New("is missing"))
	}
	if inv.Event, _, err = m.string(keyEvent); err != nil {
		return bad(keyEvent, err)
	}
	if inv.Event == "" {
		return bad(keyEvent, errors.New("is missing"))
	}
	if IsPattern(inv.Event) {
		return bad(keyEvent, errors.New("is a pattern; name one event"))
	}
	phase, _, err := m.string(keyPhase)
	if err != nil {
		return bad(keyPhase, err)
	}
	if inv.Phase = Phase(phase); !inv.Phase.Valid() {
		return bad(keyPhase, fmt.Errorf("is neither %q nor %q", Request, Response))
	}
	payload, ok := m.raw(keyPayload)
	if !ok {
		return bad(keyPayload, errors.New("is missing"))
	}
	inv.Payload = payload
	if config, ok := m.get(keyConfig); ok {
		if kindOf(config) != '{' {
			return bad(keyConfig, errors.New("is not an object"))
		}
		inv.Config = config
	}
	if raw, ok := m.get(keyTimeoutMs); ok {
		ms, err := readInteger(raw)
		if err != nil || ms < 1 {
			return bad(keyTimeoutMs, errors.New("is not a positive number of milliseconds"))
		}
		inv.Timeout = time.Duration(min(ms, maxTimeoutMs)) * time.Millisecond
	}
	if raw, ok := m.get(keyContext); ok {
		if inv.Context, err = readContext(raw); err != nil {
			return bad(keyContext, err)
		}
	}
	return inv, nil
}

func readContext(raw []byte) (*Context, error) {
	m, err := readObject(raw)
	if err != nil {
		return nil, err
	}
	c := &Context{}
	for _, member := range [...]struct {
		key string
		to  *string
	}{
		{keyTraceID, &c.TraceID}, {keySpanID, &c.SpanID}, {keySessionID, &c.SessionID}, {keyTimestamp, &c.Timestamp},
	} {
		if *member.to, _, err = m.string(member.key); err != nil {
			return nil, err
		}
	}
	if c.Timestamp != "" {
		if _, err := time.Parse(time.RFC3339Nano, c.Timestamp); err != nil {
			return nil, errors.New("timestamp is not RFC 3339")
		}
	}
	if raw, ok := m.get(keyPrincipal); ok {
		if c.Principal, err = readPrincipal(raw); err != nil {
			return nil, fmt.Errorf("principal: %w", err)
		}
	}
	return c, nil
}

func readPrincipal(raw []byte) (*Principal, error) {
	m, err := readObject(raw)
	if err != nil {
		return nil, err
	}
	p := &Principal{}
	if p.Type, _, err = m.string(keyType); err != nil {
		return nil, err
	}
	if p.Type != PrincipalUser && p.Type != PrincipalService && p.Type != PrincipalAnonymous {
		return nil, errors.New("type is none of user, service and anonymous")
	}
	if p.ID, _, err = m.string(keyID); err != nil {
		return nil, err
	}
	if claims, ok := m.get(keyClaims); ok {
		if kindOf(claims) != '{' {
			return nil, errors.New("claims is not an object")
		}
		p.Claims = claims
	}
	return p, nil
}

// AppendJSON appends the parameters of interceptor/invoke. A timeout that is
// no whole number of milliseconds is rounded up.
func (inv *Invocation) AppendJSON(dst []byte) []byte {
	o := openObject(dst)
	o.string(keyName, inv.Name)
	inv.appendCommon(&o)
	if inv.Timeout > 0 {
		o.int(keyTimeoutMs, Milliseconds(inv.Timeout))
	}
	inv.appendContext(&o)
	return o.close()
}

// Milliseconds is d as it travels: whole milliseconds, rounded up, so that a
// bound above zero never becomes none.
func Milliseconds(d time.Duration) int64 {
	return int64((d + time.Millisecond - 1) / time.Millisecond)
}

func (inv *Invocation) appendCommon(o *objectWriter) {
	o.string(keyEvent, inv.Event)
	o.string(keyPhase, string(inv.Phase))
	payload := inv.Payload
	if len(payload) == 0 {
		payload = json.RawMessage("{}")
	}
	o.raw(keyPayload, payload)
	o.optRaw(keyConfig, inv.Config)
}

func (inv *Invocation) appendContext(o *objectWriter) {
	c := inv.Context
	if c == nil {
		return
	}
	w := openObject(o.key(keyContext))
	if p := c.Principal; p != nil {
		v := openObject(w.key(keyPrincipal))
		v.string(keyType, p.Type)
		v.optString(keyID, p.ID)
		v.optRaw(keyClaims, p.Claims)
		w.b = v.close()
	}
	w.optString(keyTraceID, c.TraceID)
	w.optString(keySpanID, c.SpanID)
	w.optString(keySessionID, c.SessionID)
	w.optString(keyTimestamp, c.Timestamp)
	o.b = w.close()
}
