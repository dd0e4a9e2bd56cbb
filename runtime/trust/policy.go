package trust

import (
	"crypto/ed25519"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Policy is whose signatures count, and whether there must be one.
type Policy struct {
	keys     []PublicKey
	required bool
}

// NewPolicy makes a policy. A policy without keys accepts no signature; one that
// requires none and meets none accepts the module.
func NewPolicy(requireSigned bool, keys ...PublicKey) *Policy {
	return &Policy{keys: slices.Clone(keys), required: requireSigned}
}

// ErrUnsigned says that a module has no signature and must have one.
var ErrUnsigned = errors.New("the module is not signed")

// Verify judges a file by its SHA-256 and the text of its signature, nil where
// it has none. It returns the id of the key that signed, empty for an unsigned
// file that the policy accepts. A signature that is there must be right, whether
// one is required or not.
func (p *Policy) Verify(digest [sha256.Size]byte, signature []byte) (signer string, err error) {
	if signature == nil {
		if p.required {
			return "", ErrUnsigned
		}
		return "", nil
	}
	s, err := ParseSignature(signature)
	if err != nil {
		return "", err
	}
	known := false
	for _, k := range p.keys {
		if k.id != s.keyID {
			continue
		}
		known = true
		if ed25519.Verify(k.bytes[:], message(digest), s.bytes[:]) {
			return k.id, nil
		}
	}
	if !known {
		return "", fmt.Errorf("it is signed with the key %s, which is not trusted; trusted are %s", s.keyID, p.names())
	}
	return "", fmt.Errorf("the signature with the key %s is of other bytes than the file's (sha256 %x)", s.keyID, digest)
}

// names lists the ids of the keys.
func (p *Policy) names() string {
	if len(p.keys) == 0 {
		return "none"
	}
	ids := make([]string, len(p.keys))
	for i, k := range p.keys {
		ids[i] = k.id
	}
	return strings.Join(ids, ", ")
}
