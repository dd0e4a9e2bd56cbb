package server

import (
	"encoding/base64"
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/weir-mcp/weir/abi"
)

// maxPageBytes ends a page early where descriptors are large.
const maxPageBytes = 1 << 20

// paginate writes the page of the list that the request asks for.
func paginate(list []abi.Descriptor, request abi.ListParams, size int) ([]byte, error) {
	if request.Event != "" {
		list = slices.DeleteFunc(list, func(d abi.Descriptor) bool { return !d.Hooks.MatchEvent(request.Event) })
	}
	from := 0
	if request.Cursor != "" {
		at, after, err := readCursor(request.Cursor)
		if err != nil {
			return nil, abi.BadParams("", "cursor", err)
		}
		from = resume(list, at, after)
	}
	to, bytes := from, 0
	for to < len(list) && to-from < size && (to == from || bytes < maxPageBytes) {
		bytes += len(list[to].AppendJSON(nil))
		to++
	}
	next := ""
	if to < len(list) {
		next = cursor(to, list[to-1].Name)
	}
	return abi.AppendPage(make([]byte, 0, bytes+len(next)+64), list[from:to], next), nil
}

// A cursor says how many interceptors came before and the name of the last, so
// that a list which changes between two pages is neither repeated nor cut short
// by more than what changed.
const cursorVersion = "1"

func cursor(at int, after string) string {
	return base64.RawURLEncoding.EncodeToString([]byte(cursorVersion + ":" + strconv.Itoa(at) + ":" + after))
}

var errCursor = errors.New("is not a cursor of this server")

func readCursor(text string) (at int, after string, err error) {
	raw, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil {
		return 0, "", errCursor
	}
	version, rest, _ := strings.Cut(string(raw), ":")
	number, after, ok := strings.Cut(rest, ":")
	at, err = strconv.Atoi(number)
	if version != cursorVersion || !ok || after == "" || err != nil || at < 1 {
		return 0, "", errCursor
	}
	return at, after, nil
}

func resume(list []abi.Descriptor, at int, after string) int {
	if at <= len(list) && list[at-1].Name == after {
		return at
	}
	if i := slices.IndexFunc(list, func(d abi.Descriptor) bool { return d.Name == after }); i >= 0 {
		return i + 1
	}
	return min(at, len(list))
}
