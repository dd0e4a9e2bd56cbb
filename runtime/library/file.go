package library

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// isModuleName reports whether a child of a folder can be a module: not hidden,
// and *.wasm (config.md).
func isModuleName(name string) bool {
	return strings.HasSuffix(name, ".wasm") && !strings.HasPrefix(name, ".")
}

// moduleOf is the module that a child of a folder belongs to: itself, or the
// one whose signature it is. It is empty when there is none.
func moduleOf(name string) string {
	if name = strings.TrimSuffix(name, signatureSuffix); isModuleName(name) {
		return name
	}
	return ""
}

// stamp tells versions of a file, and of the signature beside it, apart without
// reading them. A nil signature is none, or one that nobody looks at.
type stamp struct{ info, signature fs.FileInfo }

func (s stamp) same(o stamp) bool {
	return sameInfo(s.info, o.info) && sameInfo(s.signature, o.signature)
}

func sameInfo(a, b fs.FileInfo) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.Size() == b.Size() && a.ModTime().Equal(b.ModTime()) && os.SameFile(a, b)
}

// modulesIn gives the modules of a folder with their stamps. Children that are
// no regular files after following links are left out, dangling links too.
func modulesIn(dir string, signatures bool) (map[string]stamp, error) {
	children, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	found := map[string]stamp{}
	for _, child := range children {
		if !isModuleName(child.Name()) {
			continue
		}
		info, err := os.Stat(filepath.Join(dir, child.Name()))
		if err == nil && info.Mode().IsRegular() {
			at := stamp{info: info}
			if signatures {
				if info, err := os.Stat(filepath.Join(dir, child.Name()+signatureSuffix)); err == nil {
					at.signature = info
				}
			}
			found[child.Name()] = at
		}
	}
	return found, nil
}

// errChanging says that a file was written to while it was read.
var errChanging = errors.New("the file changes while it is read")

// readFile reads a regular file of at most limit bytes, once and whole.
func readFile(path string, limit int64, what string) ([]byte, fs.FileInfo, error) {
	// O_NONBLOCK: a pipe put in the file's place must not hang the reader.
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, info, errors.New("is no regular file")
	}
	if info.Size() > limit {
		return nil, info, fmt.Errorf("has %d bytes, more than the limit of %d for a %s", info.Size(), limit, what)
	}
	content := make([]byte, info.Size())
	if _, err := io.ReadFull(f, content); err != nil {
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			err = errChanging
		}
		return nil, info, err
	}
	if after, err := f.Stat(); err != nil || !sameInfo(info, after) {
		return nil, info, errChanging
	}
	return content, info, nil
}

// candidate is what a file holds: the bytes that are hashed, judged, parsed and
// compiled.
type candidate struct {
	wasm   []byte
	sum    [sha256.Size]byte
	digest string // sum in hex
	signer string // who signed it, once that has been judged
	at     stamp
}

// read reads a file and judges its bytes before anybody parses them.
func (l *Library) read(path string) (c candidate, err error) {
	if c.wasm, c.at.info, err = readFile(path, l.o.FileBytes, "module file"); err != nil {
		return c, err
	}
	c.sum = sha256.Sum256(c.wasm)
	c.digest = hex.EncodeToString(c.sum[:])
	name := filepath.Base(path)
	if err := l.checkPin(name, c.digest); err != nil {
		return c, err
	}
	c.signer, c.at.signature, err = l.checkSignature(path, c.sum)
	return c, err
}
