package streamable

import (
	"bytes"
	"slices"

	"github.com/weir-mcp/weir/internal/wire"
)

const metaSubscription = "io.modelcontextprotocol/subscriptionId"

// mintedKey is the key of an id that was minted for a backend, as the backend
// repeats it: as the number it was, or as a string.
func mintedKey(raw []byte) (key string, quoted bool) {
	if text, ok := wire.Unquote(raw); ok {
		return text, true
	}
	id, ok := wire.ParseID(raw)
	if !ok {
		return "", false
	}
	return id.Key(), false
}

// respell puts an id back where it stands under the key that the backend was
// given: exactly as its owner has spelled it, or as a string where the backend has
// made a string of it. It is false when it does not stand there.
func respell(object []byte, key string, id wire.ID, path ...string) ([]byte, bool) {
	from, to, ok := wire.Find(object, path...)
	if !ok {
		return nil, false
	}
	found, quoted := mintedKey(object[from:to])
	if found != key || id.IsZero() {
		return nil, false
	}
	spelled := id.Raw()
	if _, isText := wire.Unquote(spelled); quoted && !isText {
		spelled = wire.AppendString(nil, string(spelled))
	}
	return slices.Concat(object[:from], spelled, object[to:]), true
}

// minted gives a request the id, and its progress the token, that a shared backend
// is to see. It is nil when there is no id.
func minted(request, id []byte) []byte {
	from, to, ok := wire.Find(request, "id")
	if !ok {
		return nil
	}
	tokenFrom, tokenTo, ok := wire.Find(request, "params", "_meta", "progressToken")
	switch {
	case !ok:
		return slices.Concat(request[:from], id, request[to:])
	case tokenFrom < from:
		return slices.Concat(request[:tokenFrom], id, request[tokenTo:from], id, request[to:])
	default:
		return slices.Concat(request[:from], id, request[to:tokenFrom], id, request[tokenTo:])
	}
}

// resultOf gives the id of a response as they usually are, with the result right
// behind the id, without reading the result. The message must have been accepted by
// [wire.Read]; then what has a result is a response and nothing else.
func resultOf(message []byte) (wire.ID, bool) {
	from, to, ok := wire.Find(message, "id")
	if !ok {
		return wire.ID{}, false
	}
	rest, comma := bytes.CutPrefix(bytes.TrimLeft(message[to:], " \t\r\n"), []byte{','})
	if !comma || !bytes.HasPrefix(bytes.TrimLeft(rest, " \t\r\n"), []byte(`"result"`)) {
		return wire.ID{}, false
	}
	return wire.ParseID(message[from:to])
}
