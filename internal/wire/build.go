package wire

import "strconv"

// The functions here write the messages that the gateway itself originates.
// Raw arguments (id, params, result, data) are copied as they are and must be
// valid JSON; an empty id is written as null. All append to dst and return it.

// AppendRequest appends a request. Empty params are left out.
func AppendRequest(dst, id []byte, method string, params []byte) []byte {
	dst = appendEnvelope(dst, id)
	dst = append(dst, `,"method":`...)
	dst = AppendString(dst, method)
	if len(params) != 0 {
		dst = append(dst, `,"params":`...)
		dst = append(dst, params...)
	}
	return append(dst, '}')
}

// AppendResult appends a response. An empty result is written as {}.
func AppendResult(dst, id, result []byte) []byte {
	dst = appendEnvelope(dst, id)
	dst = append(dst, `,"result":`...)
	if len(result) == 0 {
		result = []byte("{}")
	}
	dst = append(dst, result...)
	return append(dst, '}')
}

// AppendFailure appends an error response. Empty data are left out.
func AppendFailure(dst, id []byte, code int, message string, data []byte) []byte {
	dst = appendEnvelope(dst, id)
	dst = append(dst, `,"error":{"code":`...)
	dst = strconv.AppendInt(dst, int64(code), 10)
	dst = append(dst, `,"message":`...)
	dst = AppendString(dst, message)
	if len(data) != 0 {
		dst = append(dst, `,"data":`...)
		dst = append(dst, data...)
	}
	return append(dst, '}', '}')
}

func appendEnvelope(dst, id []byte) []byte {
	dst = append(dst, `{"jsonrpc":"2.0","id":`...)
	if len(id) == 0 {
		return append(dst, "null"...)
	}
	return append(dst, id...)
}
