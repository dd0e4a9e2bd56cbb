package server

import (
	"errors"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/weir-mcp/weir/abi"
	"github.com/weir-mcp/weir/internal/wire"
)

// read reads a message by the rules of protocol.md §6; those of the two methods
// that carry payloads may not have duplicate members at any depth.
func read(raw []byte) (wire.Message, *wire.Error) {
	m, err := wire.Read(raw)
	if err == nil && (m.Method == abi.MethodInvoke || m.Method == abi.MethodList) && m.Params != nil {
		if err = wire.Strict(m.Raw); err != nil {
			bad := wire.AsError(err)
			bad.Kind, bad.ID = m.Kind, m.ID.Clone()
			return wire.Message{}, bad
		}
	}
	if err != nil {
		return wire.Message{}, wire.AsError(err)
	}
	return m, nil
}

// generic is the code, text and data with which an error goes out. One that was
// made for going out stays as it is. The SDK's own quote the input and name Go
// types, and some have no code.
func generic(err error) (code int, message string, data []byte) {
	if e, ok := err.(*jsonrpc.Error); ok && e.Code != 0 { // a wrapped one has the SDK's words around it
		return int(e.Code), e.Message, e.Data
	}
	code = jsonrpc.CodeInvalidRequest
	if e, ok := errors.AsType[*jsonrpc.Error](err); ok && e.Code != 0 {
		code = int(e.Code)
	}
	return code, genericText(code), nil
}

func genericText(code int) string {
	switch code {
	case jsonrpc.CodeParseError:
		return "parse error"
	case jsonrpc.CodeInvalidRequest:
		return "invalid request"
	case jsonrpc.CodeMethodNotFound:
		return "method not found"
	case jsonrpc.CodeInvalidParams:
		return "invalid params"
	default:
		return "internal error"
	}
}

// busy is the answer to a request over the bound of concurrency.
func busy(m *wire.Message) []byte {
	e := abi.Failed("", "", abi.ReasonBusy, nil)
	if m.Method == abi.MethodInvoke {
		if inv, err := abi.ReadInvocation(m.Params); err == nil {
			e.Interceptor, e.Phase = inv.Name, inv.Phase
		}
	}
	return wire.AppendFailure(nil, m.ID.Raw(), e.Code(), textBusy, e.AppendData(nil))
}

const textBusy = "the server is busy"

// notFound is the answer to a method that this server does not have.
func notFound(m *wire.Message) []byte {
	return wire.AppendFailure(nil, m.ID.Raw(), jsonrpc.CodeMethodNotFound, genericText(jsonrpc.CodeMethodNotFound), nil)
}
