package module

import "bytes"

// mayBeEnvelope is false for most payloads that are none, by their first member
// alone: abi.Unwrap reads a payload to its end to be sure, which a payload of
// 100 KB need not pay for. An envelope's first member is "method" or "params",
// however spelled.
func mayBeEnvelope(payload []byte) bool {
	const space = " \t\r\n"
	b, ok := bytes.CutPrefix(bytes.TrimLeft(payload, space), []byte{'{'})
	if !ok {
		return false
	}
	b, ok = bytes.CutPrefix(bytes.TrimLeft(b, space), []byte{'"'})
	if !ok {
		return false
	}
	name, _, _ := bytes.Cut(b, []byte{'"'})
	switch string(name) {
	case "method", "params":
		return true
	}
	return bytes.IndexByte(name, '\\') >= 0
}
