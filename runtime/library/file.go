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

// stamp tells versions of a file apart without reading it.
type stamp struct{ info fs.FileInfo }

func (s stamp) same(o stamp) bool {
	if s.info == nil || o.info == nil {
		return s.info == o.info
	}
	return s.info.Size() == o.info.Size() && s.info.ModTime().Equal(o.info.ModTime()) && os.SameFile(s.info, o.info)
}

// modulesIn gives the modules of a folder with their stamps. Children that are
// no regular files after following links are left out, dangling links too.
func modulesIn(dir string) (map[string]stamp, error) {
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
			found[child.Name()] = stamp{info}
		}
	}
	return found, nil
}

// errChanging says that a file was written to while it was read.
var errChanging = errors.New("the file changes while it is read")

// readModule reads a file once; digest and module are of the same bytes.
func readModule(path string, limit int64) (wasm []byte, digest string, at stamp, err error) {
	// O_NONBLOCK: a pipe put in the file's place must not hang the reader.
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, "", at, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, "", at, err
	}
	at = stamp{info}
	if !info.Mode().IsRegular() {
		return nil, "", at, errors.New("is no regular file")
	}
	if info.Size() > limit {
		return nil, "", at, fmt.Errorf("has %d bytes, more than the limit of %d for a module file", info.Size(), limit)
	}
	wasm = make([]byte, info.Size())
	if _, err := io.ReadFull(f, wasm); err != nil {
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			err = errChanging
		}
		return nil, "", at, err
	}
	if after, err := f.Stat(); err != nil || !at.same(stamp{after}) {
		return nil, "", at, errChanging
	}
	sum := sha256.Sum256(wasm)
	return wasm, hex.EncodeToString(sum[:]), at, nil
}
