package cache

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/weir-mcp/weir/internal/private"
)

// An entry is
//
//	magic    8 bytes
//	MAC      32 bytes: HMAC-SHA256, by the user's secret, of purpose, the
//	         entry's key and all that follows
//	count    4 bytes, little endian, as are
//	lengths  8 bytes for each part
//	parts
//
// The key under the MAC binds an entry to its name: an older or another entry
// that was copied over it does not verify.
const (
	magic   = "weircod1"
	purpose = "weir compile cache, entry 1\x00"

	macAt    = len(magic)
	countAt  = macAt + sha256.Size
	lengthAt = countAt + 4

	// maxParts bounds what a header may announce.
	maxParts = 16
)

func (c *Cache) mac(key Key, contents ...[]byte) []byte {
	h := hmac.New(sha256.New, c.secret)
	h.Write([]byte(purpose))
	h.Write(key[:])
	for _, b := range contents {
		h.Write(b)
	}
	return h.Sum(nil)
}

// seal gives the header of an entry.
func (c *Cache) seal(key Key, parts [][]byte) []byte {
	lengths := binary.LittleEndian.AppendUint32(nil, uint32(len(parts)))
	for _, p := range parts {
		lengths = binary.LittleEndian.AppendUint64(lengths, uint64(len(p)))
	}
	return slices.Concat([]byte(magic), c.mac(key, append([][]byte{lengths}, parts...)...), lengths)
}

var errSeal = errors.New("it does not verify")

// unseal reads an entry into memory, verifies it and only then looks at it.
func (c *Cache) unseal(key Key, f *os.File) ([][]byte, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	size := info.Size()
	if size < int64(lengthAt) || size > c.max {
		return nil, fmt.Errorf("its size, %d bytes, is no entry's", size)
	}
	b := make([]byte, lengthAt, size)
	if _, err := io.ReadFull(f, b); err != nil {
		return nil, err
	}
	if string(b[:macAt]) != magic {
		return nil, errSeal
	}
	b = b[:size]
	if _, err := io.ReadFull(f, b[lengthAt:]); err != nil {
		return nil, err
	}
	if !hmac.Equal(b[macAt:countAt], c.mac(key, b[countAt:])) {
		return nil, errSeal
	}
	return split(b[countAt:])
}

// split takes the parts out of what follows the MAC.
func split(b []byte) ([][]byte, error) {
	if len(b) < 4 {
		return nil, errSeal
	}
	count, lengths := binary.LittleEndian.Uint32(b), b[4:]
	if count > maxParts || len(lengths) < int(count)*8 {
		return nil, errSeal
	}
	parts := make([][]byte, count)
	rest := lengths[count*8:]
	for i := range parts {
		n := binary.LittleEndian.Uint64(lengths[i*8:])
		if n > uint64(len(rest)) {
			return nil, errSeal
		}
		parts[i], rest = rest[:n:n], rest[n:]
	}
	if len(rest) > 0 {
		return nil, errSeal
	}
	return parts, nil
}

const secretBytes = 32

func newSecret() []byte {
	secret := make([]byte, secretBytes)
	_, _ = rand.Read(secret) // never fails
	return secret
}

func readSecret(path string) ([]byte, error) {
	f, err := private.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	secret, err := io.ReadAll(io.LimitReader(f, secretBytes+1))
	if err == nil && len(secret) != secretBytes {
		err = fmt.Errorf("%s does not hold %d bytes", path, secretBytes)
	}
	return secret, err
}
