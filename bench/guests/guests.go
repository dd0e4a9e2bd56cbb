// Package guests has the job that is benchmarked, as interceptors in several
// languages that do it, and a payload for them.
package guests

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// Guest is one way to write the job, built for weir and, where its ABI is not
// weir's own SDK's, for Extism.
type Guest struct {
	Name   string
	Weir   []byte
	Extism []byte
}

// The guests. All but the first are the same code on every host.
const (
	GoSDK   = "Go, weir's SDK"
	GoBytes = "Go, bytes"
	GoAny   = "Go, map any"
	Rust    = "Rust"
	C       = "C"
)

// rustTarget is what a Rust guest is built for.
const rustTarget = "wasm32-unknown-unknown"

// Build builds the guests with the given names, all where there are none, from
// the source in dir, which is the folder of the benchmarks' module. It takes some
// seconds, and keeps nothing.
func Build(ctx context.Context, dir string, names ...string) ([]Guest, error) {
	tmp, err := os.MkdirTemp("", "weir-bench-guests-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(tmp)
	rustc, err := findRustc(ctx)
	if err != nil {
		return nil, err
	}
	goBuild := func(pkg string) func(out, host string) []string {
		return func(out, host string) []string {
			return []string{"go", "build", "-buildmode=c-shared", "-trimpath", "-buildvcs=false", "-ldflags=-s -w", "-tags=" + host, "-o", out, "./guests/go/" + pkg}
		}
	}
	list := []struct {
		name     string
		weirOnly bool
		command  func(out, host string) []string
	}{
		{GoSDK, true, goBuild("sdk")},
		{GoBytes, false, goBuild("bytes")},
		{GoAny, false, goBuild("any")},
		{Rust, false, func(out, host string) []string {
			return []string{rustc, "--edition=2021", "--crate-type=cdylib", "--target=" + rustTarget, "-Copt-level=3", "-Cpanic=abort",
				"-Clto=fat", "-Cstrip=symbols", "-Clinker=wasm-ld", "-o", out, "guests/rust/" + host + ".rs"}
		}},
		{C, false, func(out, host string) []string {
			return []string{"clang", "--target=wasm32", "-std=c11", "-O3", "-mbulk-memory", "-nostdlib", "-Wall", "-Wextra", "-Werror",
				"-Wl,--no-entry,--strip-all", "-o", out, "guests/c/redact.c", "guests/c/" + host + ".c"}
		}},
	}
	var guests []Guest
	for _, l := range list {
		if len(names) > 0 && !slices.Contains(names, l.name) {
			continue
		}
		g := Guest{Name: l.name}
		for host, wasm := range map[string]*[]byte{"weir": &g.Weir, "extism": &g.Extism} {
			if host == "extism" && l.weirOnly {
				continue
			}
			out := filepath.Join(tmp, "guest.wasm")
			if _, err := run(ctx, dir, l.command(out, host)...); err != nil {
				return nil, fmt.Errorf("building the guest %q for %s: %w", l.name, host, err)
			}
			if *wasm, err = os.ReadFile(out); err != nil {
				return nil, err
			}
		}
		guests = append(guests, g)
	}
	return guests, nil
}

// findRustc finds a Rust compiler that has the target: a distribution's first,
// since one of rustup that comes first in PATH may have no target installed.
func findRustc(ctx context.Context) (string, error) {
	for _, rustc := range []string{"/usr/bin/rustc", "rustc"} {
		lib, err := run(ctx, ".", rustc, "--print=target-libdir", "--target="+rustTarget)
		if err != nil {
			continue
		}
		if _, err := os.Stat(strings.TrimSpace(lib)); err == nil {
			return rustc, nil
		}
	}
	return "", fmt.Errorf("no rustc for %s: apt-get install rustc libstd-rust-dev-wasm32 lld, or rustup target add %[1]s", rustTarget)
}

func run(ctx context.Context, dir string, command ...string) (string, error) {
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.Dir = dir
	if command[0] == "go" {
		cmd.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm", "CGO_ENABLED=0", "GOFLAGS=")
	}
	var words bytes.Buffer
	cmd.Stderr = &words
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%s: %w\n%s", command[0], err, bytes.TrimSpace(words.Bytes()))
	}
	return string(out), nil
}
