package library

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"github.com/weir-mcp/weir/runtime/trust"
)

// Pin is the digest that a file must have.
type Pin struct {
	// SHA256 is 64 lower-case hexadecimal digits.
	SHA256 string
	// Source says where the pin stands ("weir.yaml:12:3"), for errors.
	Source string
}

// signatureSuffix follows the name of a module in that of its signature.
const signatureSuffix = ".sig"

// checkPin refuses bytes that are not the pinned ones.
func (l *Library) checkPin(name, digest string) error {
	pin, ok := l.o.Pins[name]
	if !ok || digest == pin.SHA256 {
		return nil
	}
	return fmt.Errorf("its SHA-256 is %s, but %s pins %s; put the pinned file back or change the pin", digest, pin.Source, pin.SHA256)
}

// checkSignature judges the signature beside a file. It returns who signed and
// the signature file's stamp, nil where there is none. A signature that is there
// and cannot be read is a wrong one, never an absent one.
func (l *Library) checkSignature(path string, digest [sha256.Size]byte) (signer string, at fs.FileInfo, err error) {
	if l.o.Trust == nil {
		return "", nil, nil
	}
	beside := filepath.Base(path) + signatureSuffix
	text, at, err := readFile(path+signatureSuffix, trust.MaxBytes, "signature")
	if errors.Is(err, fs.ErrNotExist) {
		text, err = nil, nil
	}
	if err == nil {
		signer, err = l.o.Trust.Verify(digest, text)
	}
	switch {
	case errors.Is(err, trust.ErrUnsigned):
		err = fmt.Errorf("%w, and the configuration requires that (trust.requireSigned); have it signed with one of the trusted keys, by weir sign, and put %s beside it", err, beside)
	case err != nil:
		err = fmt.Errorf("%s: %w; have the file signed anew with one of the trusted keys, by weir sign, or put the signed file back", beside, err)
	}
	return signer, at, err
}
