package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/spf13/cobra"

	"github.com/weir-mcp/weir/runtime/trust"
)

func newKeygen(std streams) *cobra.Command {
	var name string
	cmd := &cobra.Command{
		Use:   "keygen [--out NAME]",
		Short: "Make a key pair to sign modules with",
		Long: "keygen makes an ed25519 key pair: NAME.key, which signs and is for whoever releases modules, and NAME.pub, which goes\n" +
			"into trust.keys of a weir.yaml. It never overwrites a key. The private key is not encrypted; keep it accordingly.",
		Example: "  weir keygen --out ops\n  weir sign --key ops.key interceptors/quota.wasm",
		Args:    exactly(0, "flags only"),
		RunE: func(*cobra.Command, []string) error {
			if name == "" {
				return usagef("--out is empty; give the pair a name such as ops")
			}
			return keygen(std, name)
		},
	}
	cmd.Flags().StringVar(&name, "out", "weir", "the files' name, without .key and .pub; may have a folder")
	return cmd
}

func keygen(std streams, name string) error {
	key := trust.GenerateKey()
	private, public := keyFiles(name)
	if err := writeNew(private, key.Reveal(), 0o600); err != nil {
		return occupied(err)
	}
	if err := writeNew(public, key.Public().String(), 0o644); err != nil {
		_ = os.Remove(private) // half a pair is of no use, and in the way of the next try
		return occupied(err)
	}
	_, err := fmt.Fprintf(std.out, "key %s: %s signs, keep it secret; %s goes into trust.keys\n", key.Public().ID(), private, public)
	return err
}

func occupied(err error) error {
	if errors.Is(err, fs.ErrExist) {
		return usagef("%w; keys are never overwritten: choose another --out or move the file away", err)
	}
	return usageError{err}
}
