package wire

import (
	"strings"
	"unicode/utf8"
)

// Clip makes a stranger's words fit for a log or an error: at most limit bytes
// of s, which end with a whole character, and "…" where something was left off.
// Bytes that are not UTF-8 are left out. A limit below 0 is 0.
func Clip(s string, limit int) string {
	limit = max(limit, 0)
	if len(s) <= limit {
		return strings.ToValidUTF8(s, "")
	}
	for limit > 0 && !utf8.RuneStart(s[limit]) {
		limit--
	}
	return strings.ToValidUTF8(s[:limit], "") + "…"
}
