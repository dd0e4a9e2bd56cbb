package trust

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
)

const (
	keyContext       = "weir key id v1\x00"
	signatureContext = "weir module signature v1\x00"
)

// PublicKey is what signatures are checked with.
type PublicKey struct {
	bytes [ed25519.PublicKeySize]byte
	id    string
}

func newPublicKey(b []byte) PublicKey {
	k := PublicKey{bytes: [ed25519.PublicKeySize]byte(b)}
	sum := sha256.Sum256(append([]byte(keyContext), b...))
	k.id = hex.EncodeToString(sum[:8])
	return k
}

// ParsePublicKey reads the text form of a public key.
func ParsePublicKey(text []byte) (PublicKey, error) {
	const what = "public key"
	if _, err := line(text, what, wordPrivate, 1); err == nil {
		return PublicKey{}, fmt.Errorf("a private key where a public one belongs: use the .pub file, and keep this one secret")
	}
	words, err := line(text, what, wordPublic, 1)
	if err != nil {
		return PublicKey{}, err
	}
	b, err := decode(words[0], what, ed25519.PublicKeySize)
	if err != nil {
		return PublicKey{}, err
	}
	return newPublicKey(b), nil
}

// ID is the key's short name: 16 hexadecimal digits.
func (k PublicKey) ID() string { return k.id }

// String is the text form, without a line break.
func (k PublicKey) String() string { return wordPublic + " " + encoding.EncodeToString(k.bytes[:]) }

// PrivateKey makes signatures. It prints as its key id by every way that fmt
// has.
type PrivateKey struct{ key ed25519.PrivateKey }

// GenerateKey makes a key pair out of the system's randomness.
func GenerateKey() PrivateKey {
	seed := make([]byte, ed25519.SeedSize)
	_, _ = rand.Read(seed) // never fails: the process ends where there is no randomness
	return PrivateKey{ed25519.NewKeyFromSeed(seed)}
}

// ParsePrivateKey reads the text form of a private key.
func ParsePrivateKey(text []byte) (PrivateKey, error) {
	const what = "private key"
	words, err := line(text, what, wordPrivate, 1)
	if err != nil {
		return PrivateKey{}, err
	}
	seed, err := decode(words[0], what, ed25519.SeedSize)
	if err != nil {
		return PrivateKey{}, err
	}
	return PrivateKey{ed25519.NewKeyFromSeed(seed)}, nil
}

// Public is the key that checks what k signs.
func (k PrivateKey) Public() PublicKey { return newPublicKey(k.key.Public().(ed25519.PublicKey)) }

// Reveal is the text form, without a line break: a secret.
func (k PrivateKey) Reveal() string { return wordPrivate + " " + encoding.EncodeToString(k.key.Seed()) }

// Format prints the key's id, whatever the verb.
func (k PrivateKey) Format(s fmt.State, _ rune) { fmt.Fprintf(s, "private key %s", k.Public().ID()) }

// Sign signs the bytes of a module file.
func (k PrivateKey) Sign(module []byte) Signature {
	sum := sha256.Sum256(module)
	return Signature{
		keyID: k.Public().ID(),
		bytes: [ed25519.SignatureSize]byte(ed25519.Sign(k.key, message(sum))),
	}
}

// message is what is signed of a file.
func message(digest [sha256.Size]byte) []byte { return append([]byte(signatureContext), digest[:]...) }
