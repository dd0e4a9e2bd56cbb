package streamable

import (
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

// replaced puts a value in the place of the one that stands there.
func replaced(object, value []byte, path ...string) []byte {
	from, to, ok := wire.Find(object, path...)
	if !ok {
		return object
	}
	return slices.Concat(object[:from], value, object[to:])
}
