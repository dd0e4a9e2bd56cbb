package guestbuild

import (
	"slices"
	"strings"
)

// childEnv is the environment of the go command: the caller's, less what would
// make another thing of the build than a guest. Of GOFLAGS only what says where
// modules come from is kept: -race, -tags, -cover and their like are meant for
// the program that asks, not for the guest.
func childEnv(env []string) []string {
	child := slices.DeleteFunc(slices.Clone(env), func(kv string) bool {
		switch name, _, _ := strings.Cut(kv, "="); strings.ToUpper(name) {
		case "GOOS", "GOARCH", "CGO_ENABLED", "GOFLAGS", "GOWORK", "GO111MODULE", "PWD":
			return true
		}
		return false
	})
	var kept []string
	for _, f := range strings.Fields(lookup(env, "GOFLAGS")) {
		f = "-" + strings.TrimLeft(f, "-")
		if strings.HasPrefix(f, "-mod=") || strings.HasPrefix(f, "-modfile=") || f == "-modcacherw" || strings.HasPrefix(f, "-modcacherw=") {
			kept = append(kept, f)
		}
	}
	return append(child, "GOOS=wasip1", "GOARCH=wasm", "CGO_ENABLED=0", "GOWORK=off", "GOFLAGS="+strings.Join(kept, " "))
}

// lookup returns a variable of an environment; the last one of a name counts.
func lookup(env []string, name string) string {
	for _, kv := range slices.Backward(env) {
		if k, v, ok := strings.Cut(kv, "="); ok && k == name {
			return v
		}
	}
	return ""
}
