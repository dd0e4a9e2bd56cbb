package trust

import (
	"crypto/ed25519"
	"fmt"
	"regexp"
)

// Signature is the signature of a module file.
type Signature struct {
	keyID string
	bytes [ed25519.SignatureSize]byte
}

var keyID = regexp.MustCompile(`^[0-9a-f]{16}$`)

// ParseSignature reads the text form of a signature.
func ParseSignature(text []byte) (Signature, error) {
	const what = "signature"
	words, err := line(text, what, wordSignature, 2)
	if err != nil {
		return Signature{}, err
	}
	if !keyID.MatchString(words[0]) {
		return Signature{}, fmt.Errorf("no %s: its second word is not a key id of 16 hexadecimal digits", what)
	}
	b, err := decode(words[1], what, ed25519.SignatureSize)
	if err != nil {
		return Signature{}, err
	}
	return Signature{keyID: words[0], bytes: [ed25519.SignatureSize]byte(b)}, nil
}

// KeyID is the id of the key that claims to have signed.
func (s Signature) KeyID() string { return s.keyID }

// String is the text form, without a line break.
func (s Signature) String() string {
	return wordSignature + " " + s.keyID + " " + encoding.EncodeToString(s.bytes[:])
}
