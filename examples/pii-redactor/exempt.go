package main

import "github.com/weir-mcp/weir/guest"

// handles are the places whose strings mean something to the protocol and
// nothing to people. Changing one would break the operation.
var handles = map[string]bool{
	"$._meta.progressToken": true,
	"$.nextCursor":          true,
	"$.requestState":        true,
	"$.task.taskId":         true,
	`$._meta["io.modelcontextprotocol/related-task"].taskId`: true,
}

// exempt reports whether a string that would be redacted must stay. It is asked
// only then, because a path costs an allocation.
func exempt(o *guest.Operation, at guest.Path, text string) bool {
	if name := at.Name(); (name == "data" || name == "blob") && isBase64(text) {
		return true
	}
	path := at.String()
	if o.Phase == guest.Request && path == "$.name" && (o.Event == guest.ToolsCall || o.Event == guest.PromptsGet) {
		return true
	}
	return handles[path]
}

// minBase64 is longer than any number that is redacted, so that a number never
// passes for an image.
const minBase64 = 64

// isBase64 reports whether s is what MCP puts into "data" and "blob": bytes of
// an image, a sound or a file. Digits in there are nobody's phone number.
func isBase64(s string) bool {
	if len(s) < minBase64 || len(s)%4 != 0 {
		return false
	}
	end := len(s)
	for end > len(s)-2 && s[end-1] == '=' {
		end--
	}
	for i := range end {
		if c := s[i]; !isWord(c) && c != '+' && c != '/' {
			return false
		}
	}
	return true
}
