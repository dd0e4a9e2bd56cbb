package main

import (
	b64 "encoding/base64"
	"encoding/json"

	"github.com/weir-mcp/weir/guest"
)

// maxJWTHeader bounds what is decoded to see whether it is one.
const maxJWTHeader = 1024

// jwtAt finds a signed JSON web token: three parts of base64url, of which the
// first is a JSON object with "alg". It is a warning only: such tokens are
// short-lived, and passing one on may be what a tool is for.
func jwtAt(s string, i int) (secret, int) {
	if len(s)-i < 3 || s[i:i+3] != "eyJ" || i > 0 && base64url[s[i-1]] && !isEscape(s, i-2) {
		return secret{}, 0
	}
	header := base64url.run(s[i:], maxJWTHeader+1)
	if header > maxJWTHeader {
		return secret{}, 0
	}
	end := i + header
	for range 2 {
		if end == len(s) || s[end] != '.' {
			return secret{}, 0
		}
		n := base64url.run(s[end+1:], len(s))
		if n == 0 {
			return secret{}, 0
		}
		end += 1 + n
	}
	raw, err := b64.RawURLEncoding.DecodeString(s[i : i+header])
	if err != nil || !json.Valid(raw) {
		return secret{}, 0
	}
	if _, ok := guest.GetText(raw, "alg"); !ok {
		return secret{}, 0
	}
	return secret{"jwt", "a JSON web token", guest.SeverityWarn}, end
}
