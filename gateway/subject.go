package gateway

import (
	"net/url"
	"regexp"
	"strings"

	"github.com/weir-mcp/weir/abi"
	"github.com/weir-mcp/weir/internal/wire"
)

// subject is the tool, prompt or resource that an operation is about, fit for a
// record.
func subject(op *Operation) string {
	params := op.params()
	switch op.Event {
	case abi.ToolsCall, abi.PromptsGet:
		raw, _ := wire.Get(params, "name")
		name, _ := wire.Unquote(raw)
		return clip(name)
	case abi.ResourcesRead, abi.ResourcesSubscribe:
		raw, ok := wire.Get(params, "uri")
		if !ok {
			return ""
		}
		text, _ := wire.Unquote(raw)
		return address(text)
	default:
		return ""
	}
}

// serverName is the identity of a server as an embedding program gives it, which
// may be its address.
func serverName(s string) string {
	if strings.Contains(s, "://") {
		return address(s)
	}
	return clip(s)
}

// innerUser is what looks like a user behind the authority: in an address that
// has another one in its path, or of which some readers take a part for the
// authority that others do not.
var innerUser = regexp.MustCompile(`([/\\]{2})[^/\\]*@|[^/\\]*:[^/\\]*@`)

// longPath bounds what is searched of a path, in bytes.
const longPath = 1 << 10

// address is a URI without userinfo, query and fragment, where secrets stand, and
// fit for a record.
func address(text string) string {
	u, err := url.Parse(text)
	if err != nil {
		return "(not a URI)"
	}
	u.User, u.RawQuery, u.Fragment, u.RawFragment, u.ForceQuery = nil, "", "", "", false
	if u.Opaque != "" {
		// What follows the scheme may be anything, a data: body included.
		u.Opaque = "…"
		return clip(u.String())
	}
	path := u.Path
	// A query that is escaped is one to whoever unescapes the path once more.
	if i := strings.IndexAny(path, "?#"); i >= 0 {
		path = path[:i]
	}
	if len(path) > longPath {
		// A segment that was cut might be a user whose end is not seen.
		path = path[:strings.LastIndexAny(path[:longPath], `/\`)+1] + "…"
	}
	path = innerUser.ReplaceAllString(path, "$1")
	if first, _, _ := strings.Cut(path, "/"); u.Host == "" {
		// A relative reference that begins with a user, as ann@host/path does.
		path = path[strings.LastIndex(first, "@")+1:]
	}
	if path != u.Path {
		u.Path, u.RawPath = path, ""
	}
	return clip(u.String())
}
