// Package guestbuild builds Go guests (package guest) out of this module's own
// source, once per source digest, into the user's cache. Tests, the demo and
// go generate all call it, so that "go test ./..." needs no earlier step and a
// second run costs no compilation.
//
// It needs the go command and a clone of the module, and knows nothing of what
// is in a guest. A module that was built is kept under
//
//	os.UserCacheDir()/weir/guests/DIGEST/NAME.wasm
//
// where DIGEST covers the Go release, the flags, go.mod, go.sum and every
// source file that goes into the build. Processes that want the same module at
// the same time build it once: the others wait on a lock that the system drops
// with its holder, so a crash leaves nothing to clean up. Modules that have not
// been asked for lately go when all together pass [MaxCacheBytes].
//
// All functions are safe for concurrent use, by processes too.
package guestbuild

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"time"
)

// Module is the path of the module whose packages are built.
const Module = "github.com/weir-mcp/weir"

// flags are those of sandbox.md §D, and what keeps a build the same wherever
// its clone lies.
var flags = []string{"-buildmode=c-shared", "-trimpath", "-buildvcs=false", "-ldflags=-s -w"}

// Go builds a package and returns the path of its module, a file that must not
// be changed. Pkg is an import path in [Module], or a directory that begins
// with "." or is absolute; a relative one counts from the working directory,
// where the clone of the module is looked for, upwards.
//
// Where the source does not compile, the error holds the compiler's words.
func Go(ctx context.Context, pkg string) (wasm string, err error) {
	b, err := builderHere()
	if err != nil {
		return "", err
	}
	return b.build(ctx, pkg)
}

// Bytes builds a package as [Go] does and returns its module.
func Bytes(ctx context.Context, pkg string) ([]byte, error) {
	file, err := Go(ctx, pkg)
	if err != nil {
		return nil, err
	}
	return os.ReadFile(file)
}

// Copy builds a package as [Go] does and copies its module to a file in one
// step: who watches the file's folder sees the old one or the new one. Where
// the file has these bytes already it is left alone. A dst that ends in a
// separator, or is a directory, is where the file goes, under the package's
// name with ".wasm"; missing directories are made.
func Copy(ctx context.Context, pkg, dst string) (file string, err error) {
	built, err := Go(ctx, pkg)
	if err != nil {
		return "", err
	}
	if info, err := os.Stat(dst); err == nil && info.IsDir() || strings.HasSuffix(dst, "/") || strings.HasSuffix(dst, string(filepath.Separator)) {
		dst = filepath.Join(dst, filepath.Base(built))
	}
	wasm, err := os.ReadFile(built)
	if err != nil {
		return "", err
	}
	if old, err := os.ReadFile(dst); err == nil && bytes.Equal(old, wasm) {
		return dst, nil
	}
	if err := os.MkdirAll(filepath.Dir(dst), 0o755); err != nil {
		return "", err
	}
	return dst, writeInOneStep(dst, wasm)
}

// writeInOneStep gives the temporary file a name that no watcher takes for a
// module.
func writeInOneStep(dst string, b []byte) error {
	tmp, err := os.CreateTemp(filepath.Dir(dst), ".guestbuild-*.tmp")
	if err != nil {
		return err
	}
	defer os.Remove(tmp.Name())
	_, err = tmp.Write(b)
	if err := errors.Join(err, tmp.Chmod(0o644), tmp.Close()); err != nil {
		return err
	}
	return os.Rename(tmp.Name(), dst)
}

// builder is everything that a build depends on.
type builder struct {
	dir   string // where relative package directories count from
	root  string // of the clone
	cache cache
	env   []string
	// compiled, where set, is told of each run of the compiler.
	compiled func()
}

func builderHere() (*builder, error) {
	dir, err := os.Getwd()
	if err != nil {
		return nil, err
	}
	root, err := findClone(dir)
	if err != nil {
		return nil, err
	}
	c, env, err := userCache(os.Environ())
	if err != nil {
		return nil, err
	}
	return &builder{dir: dir, root: root, cache: c, env: childEnv(env)}, nil
}

// findClone looks for the go.mod of [Module] in dir and above.
func findClone(dir string) (string, error) {
	for at := dir; ; at = filepath.Dir(at) {
		b, err := os.ReadFile(filepath.Join(at, "go.mod"))
		if err == nil && moduleOf(b) == Module {
			return at, nil
		}
		if at == filepath.Dir(at) {
			return "", fmt.Errorf("building a guest needs the source of %[1]s, and neither %[2]s nor a folder above it is a clone: git clone https://%[1]s and run it in there", Module, dir)
		}
	}
}

func moduleOf(gomod []byte) string {
	for line := range strings.Lines(string(gomod)) {
		if f := strings.Fields(line); len(f) >= 2 && f[0] == "module" {
			return strings.Trim(f[1], `"`)
		}
	}
	return ""
}

// importPath turns what a caller names into an import path in [Module].
func (b *builder) importPath(pkg string) (string, error) {
	if !strings.HasPrefix(pkg, ".") && !filepath.IsAbs(pkg) {
		if pkg != Module && !strings.HasPrefix(pkg, Module+"/") {
			return "", fmt.Errorf("%q is not a package of %s", pkg, Module)
		}
		return pkg, nil
	}
	dir := pkg
	if !filepath.IsAbs(dir) {
		dir = filepath.Join(b.dir, dir)
	}
	rel, err := filepath.Rel(b.root, dir)
	if err != nil || rel == ".." || strings.HasPrefix(rel, ".."+string(filepath.Separator)) {
		return "", fmt.Errorf("%s is outside the clone of %s in %s", dir, Module, b.root)
	}
	return path.Join(Module, filepath.ToSlash(rel)), nil
}

func (b *builder) build(ctx context.Context, pkg string) (string, error) {
	importPath, err := b.importPath(pkg)
	if err != nil {
		return "", fmt.Errorf("guestbuild: %w", err)
	}
	name := path.Base(importPath) + ".wasm"
	digest, err := b.digest(ctx, importPath)
	if err != nil {
		return "", fmt.Errorf("guestbuild: %w", err)
	}
	file, err := b.cache.get(ctx, digest, name, func(out string) error { return b.compile(ctx, importPath, out) })
	if err != nil {
		return "", fmt.Errorf("guestbuild: %w", err)
	}
	return file, nil
}

func (b *builder) compile(ctx context.Context, importPath, out string) error {
	if b.compiled != nil {
		b.compiled()
	}
	args := append([]string{"build", "-o", out}, flags...)
	_, err := b.run(ctx, append(args, importPath)...)
	return err
}

// run runs the go command in the clone. The error holds what it said.
func (b *builder) run(ctx context.Context, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir, cmd.Env, cmd.WaitDelay = b.root, b.env, 5*time.Second
	var out, words bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &words
	err := cmd.Run()
	switch {
	case err == nil:
		return out.Bytes(), nil
	case ctx.Err() != nil:
		return nil, fmt.Errorf("go %s: %w", args[0], context.Cause(ctx))
	case errors.Is(err, exec.ErrNotFound), errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("building a guest needs the go command: install Go from https://go.dev/dl and put it into PATH: %w", err)
	}
	return nil, fmt.Errorf("go %s: %w\n%s", strings.Join(args, " "), err, bytes.TrimSpace(words.Bytes()))
}

func sum(b []byte) string {
	h := sha256.Sum256(b)
	return hex.EncodeToString(h[:])
}
