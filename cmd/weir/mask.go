package main

import (
	"cmp"
	"os"
	"slices"
	"strings"

	"github.com/weir-mcp/weir/internal/config"
)

// maskOf gives what turns the values of the variables that file expands back
// into ${NAME} (config.md): errors of the system quote paths, addresses and
// arguments as they are.
func maskOf(file *config.File) func(string) string {
	type secret struct{ value, shown string }
	var secrets []secret
	for _, name := range file.ConsumedEnv {
		if value := os.Getenv(name); value != "" {
			secrets = append(secrets, secret{value, "${" + name + "}"})
		}
	}
	if len(secrets) == 0 {
		return nil
	}
	// Of two values that begin alike the longer one is meant.
	slices.SortStableFunc(secrets, func(a, b secret) int { return cmp.Compare(len(b.value), len(a.value)) })
	pairs := make([]string, 0, 2*len(secrets))
	for _, s := range secrets {
		pairs = append(pairs, s.value, s.shown)
	}
	return strings.NewReplacer(pairs...).Replace
}

// maskedError is an error whose text shows no secret.
type maskedError struct {
	text string
	err  error
}

func (e maskedError) Error() string { return e.text }
func (e maskedError) Unwrap() error { return e.err }

// masked is err with its text masked.
func masked(mask func(string) string, err error) error {
	if err == nil || mask == nil {
		return err
	}
	return maskedError{mask(err.Error()), err}
}
