package main

import (
	"fmt"
	"io"
	"os"

	"github.com/weir-mcp/weir/internal/config"
	"github.com/weir-mcp/weir/runtime/trust"
)

// trustOf reads the keys that the configuration names; nil when it names none.
// What is wrong with them is wrong configuration: without a key that somebody
// meant to be there, the wrong modules would be refused.
func trustOf(t *config.Trust) (*trust.Policy, error) {
	if t == nil {
		return nil, nil
	}
	keys := make([]trust.PublicKey, len(t.Keys))
	for i, path := range t.Keys {
		text, err := readKey(path.Reveal())
		if err == nil {
			keys[i], err = trust.ParsePublicKey(text)
		}
		if err != nil {
			return nil, usagef("%s: trust.keys[%d] (%s): %w", t.Source, i, path, err)
		}
	}
	return trust.NewPolicy(t.RequireSigned, keys...), nil
}

// readKey reads no more of a file than a key may have.
func readKey(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, trust.MaxBytes+1))
}

// keyFiles are the names of the files of a pair.
func keyFiles(name string) (private, public string) { return name + ".key", name + ".pub" }

// writeNew writes a file that must not exist yet.
func writeNew(path, line string, mode os.FileMode) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(f, line)
	if closed := f.Close(); err == nil {
		err = closed
	}
	if err != nil {
		_ = os.Remove(path)
	}
	return err
}
