package guestbuild

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
)

// listedPackage is what is used of go list's answer.
type listedPackage struct {
	Dir        string
	ImportPath string
	Standard   bool
	GoFiles    []string
	SFiles     []string
	HFiles     []string
	OtherFiles []string
	EmbedFiles []string
}

func (p *listedPackage) files() []string {
	return slices.Concat(p.GoFiles, p.SFiles, p.HFiles, p.OtherFiles, p.EmbedFiles)
}

// digest covers all that decides what the compiler makes of a package: the
// toolchain, the flags, the sources of every package in the build that is not
// of the standard library, and the module files.
func (b *builder) digest(ctx context.Context, importPath string) (string, error) {
	h := sha256.New()
	toolchain, err := b.run(ctx, "env", "GOVERSION", "GOEXPERIMENT", "GOWASM", "GOFLAGS")
	if err != nil {
		return "", err
	}
	note(h, "toolchain", toolchain)
	note(h, "package", []byte(importPath))
	for _, f := range flags {
		note(h, "flag", []byte(f))
	}
	listing, err := b.run(ctx, "list", "-deps", "-json=Dir,ImportPath,Standard,GoFiles,SFiles,HFiles,OtherFiles,EmbedFiles", importPath)
	if err != nil {
		return "", err
	}
	dec := json.NewDecoder(bytes.NewReader(listing))
	for {
		var p listedPackage
		if err := dec.Decode(&p); err == io.EOF {
			break
		} else if err != nil {
			return "", fmt.Errorf("go list: %w", err)
		}
		if p.Standard {
			continue
		}
		for _, name := range p.files() {
			if err := noteFile(h, p.ImportPath+"/"+name, filepath.Join(p.Dir, name)); err != nil {
				return "", err
			}
		}
	}
	for _, name := range []string{"go.mod", "go.sum"} {
		if err := noteFile(h, name, filepath.Join(b.root, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return "", err
		}
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// note writes what and b so that no two sequences of notes read the same.
func note(h io.Writer, what string, b []byte) {
	fmt.Fprintf(h, "%q %d\n", what, len(b))
	_, _ = h.Write(b)
}

func noteFile(h io.Writer, what, file string) error {
	b, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	note(h, what, b)
	return nil
}
