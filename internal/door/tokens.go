package door

import (
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/weir-mcp/weir/abi"
)

// Authenticator says who makes a request. It is called from many goroutines.
type Authenticator interface {
	// Authenticate gives the caller, or false when the request has no credentials
	// that count. It must not tell why: what it answers in which time must not
	// help who guesses.
	Authenticate(*http.Request) (*abi.Principal, bool)
}

// Token is one caller's bearer token.
type Token struct {
	// Name is the id of the principal; unique.
	Name string
	// Secret is what follows "Bearer " in the Authorization header.
	Secret string
}

// Tokens authenticates by bearer tokens (config.md, listen.auth).
type Tokens struct{ known []entry }

type entry struct {
	digest    [sha256.Size]byte
	principal *abi.Principal
}

// NewTokens makes an authenticator. There must be at least one token, none
// empty, with spaces or control characters in it, and no two equal.
func NewTokens(tokens ...Token) (*Tokens, error) {
	if len(tokens) == 0 {
		return nil, errors.New("there are no tokens: nobody could call")
	}
	t := &Tokens{}
	for _, token := range tokens {
		if token.Secret == "" || strings.ContainsFunc(token.Secret, func(r rune) bool { return r <= ' ' || r >= 0x7f }) {
			return nil, fmt.Errorf("the token of %q is empty or holds spaces, control characters or letters that are not ASCII", token.Name)
		}
		k := entry{sha256.Sum256([]byte(token.Secret)), &abi.Principal{Type: abi.PrincipalService, ID: token.Name}}
		for _, other := range t.known {
			if other.digest == k.digest {
				return nil, fmt.Errorf("%q and %q have the same token", other.principal.ID, token.Name)
			}
		}
		t.known = append(t.known, k)
	}
	return t, nil
}

// Authenticate compares digests of equal length with all tokens, so that the
// time it takes tells nothing of them.
func (t *Tokens) Authenticate(r *http.Request) (*abi.Principal, bool) {
	values := r.Header.Values("Authorization")
	if len(values) != 1 {
		return nil, false
	}
	scheme, secret, _ := strings.Cut(values[0], " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return nil, false
	}
	digest := sha256.Sum256([]byte(strings.Trim(secret, " ")))
	var principal *abi.Principal
	for _, k := range t.known {
		if subtle.ConstantTimeCompare(k.digest[:], digest[:]) == 1 {
			principal = k.principal
		}
	}
	return principal, principal != nil
}

var _ Authenticator = (*Tokens)(nil)
