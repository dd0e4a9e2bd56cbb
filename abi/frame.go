package abi

import (
	"encoding/json"
	"errors"
	"fmt"
)

// AppendCall appends what weir_invoke and a command's stdin take (abi.md). The
// interceptor is called by inv.Name, which must be the guest's own name for it.
func AppendCall(dst []byte, inv *Invocation) []byte {
	o := openObject(dst)
	o.string(keyInterceptor, inv.Name)
	inv.appendCommon(&o)
	inv.appendContext(&o)
	o.optRaw(keyRequest, inv.Request)
	return o.close()
}

// ReadCall reads what [AppendCall] writes.
func ReadCall(raw []byte) (Invocation, error) {
	m, err := readObject(raw)
	if err != nil {
		return Invocation{}, BadParams("", "", err)
	}
	inv, err := readInvocation(m, keyInterceptor)
	if err != nil {
		return inv, err
	}
	if request, ok := m.raw(keyRequest); ok {
		inv.Request = request
	}
	return inv, nil
}

// AppendAnswer appends a guest's answer that carries a result.
func AppendAnswer(dst []byte, r *Result) []byte {
	o := openObject(dst)
	o.b = r.AppendJSON(o.key(keyResult))
	return o.close()
}

// AppendFailure appends a guest's answer that says it failed. The message goes
// to the operator's log only. Data is any JSON value, or nil.
func AppendFailure(dst []byte, message string, data json.RawMessage) []byte {
	o := openObject(dst)
	w := openObject(o.key(keyError))
	w.string(keyMessage, message)
	w.optRaw(keyData, data)
	o.b = w.close()
	return o.close()
}

// GuestError is the error member of a guest's answer.
type GuestError struct {
	Message string
	Data    json.RawMessage
}

// Error returns the guest's words. They are for the operator's log only.
func (e *GuestError) Error() string { return e.Message }

// ReadAnswer reads a guest's answer to inv, given by the interceptor d. The
// members "type", "interceptor" and "phase" are filled in when left out and
// refused when they contradict. The failure is a [*GuestError] when the guest
// says it failed, and any other error when the answer makes no sense
// (bad_output). The answer must have passed the strict reader.
func ReadAnswer(raw []byte, d *Descriptor, phase Phase) (Result, error) {
	m, err := readObject(raw)
	if err != nil {
		return Result{}, err
	}
	result, hasResult := m.get(keyResult)
	failure, hasError := m.get(keyError)
	switch {
	case hasResult && hasError:
		return Result{}, errors.New(`the answer has both "result" and "error"`)
	case hasError:
		return Result{}, readGuestError(failure)
	case !hasResult:
		return Result{}, errors.New(`the answer has neither "result" nor "error"`)
	}
	if m, err = readObject(result); err != nil {
		return Result{}, fmt.Errorf("result: %w", err)
	}
	r, err := readResult(m)
	if err != nil {
		return Result{}, fmt.Errorf("result: %w", err)
	}
	if err := r.Complete(d, phase); err != nil {
		return Result{}, fmt.Errorf("result: %w", err)
	}
	if err := r.readBody(m); err != nil {
		return Result{}, fmt.Errorf("result: %w", err)
	}
	return r, nil
}

// Complete fills in what an answer of the interceptor d left out of type,
// interceptor and phase, and returns an error where it contradicts (abi.md).
func (r *Result) Complete(d *Descriptor, phase Phase) error {
	if r.Type == "" {
		r.Type = d.Type
	}
	if r.Interceptor == "" {
		r.Interceptor = d.Name
	}
	if r.Phase == "" {
		r.Phase = phase
	}
	return r.Echoes(d.Name, d.Type, phase)
}

// Echoes returns an error unless the result names the interceptor, type and
// phase it was asked of (protocol.md §5, Malformed results).
func (r *Result) Echoes(name string, typ Type, phase Phase) error {
	switch {
	case r.Interceptor != name:
		return fmt.Errorf("the result names interceptor %q instead of %q", r.Interceptor, name)
	case r.Type != typ:
		return fmt.Errorf("the result is a %s instead of a %s", r.Type, typ)
	case r.Phase != phase:
		return fmt.Errorf("the result names phase %q instead of %q", r.Phase, phase)
	}
	return nil
}

func readGuestError(raw []byte) error {
	m, err := readObject(raw)
	if err != nil {
		return fmt.Errorf("error: %w", err)
	}
	message, _, err := m.string(keyMessage)
	if err != nil {
		return fmt.Errorf("error: %w", err)
	}
	e := &GuestError{Message: message}
	if data, ok := m.raw(keyData); ok {
		e.Data = data
	}
	return e
}
