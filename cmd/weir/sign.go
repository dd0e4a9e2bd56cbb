package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"runtime"

	"github.com/spf13/cobra"

	"github.com/weir-mcp/weir/runtime/trust"
)

func newSign(std streams) *cobra.Command {
	var keyFile string
	cmd := &cobra.Command{
		Use:   "sign [--key NAME.key] FILE.wasm",
		Short: "Sign a module",
		Long: "sign writes FILE.wasm.sig, the signature of the module's bytes, beside the module, in place of one that is there. A\n" +
			"weir whose trust.keys has the public key takes it as proof of who vouches for these bytes.",
		Example: "  weir sign --key ops.key interceptors/quota.wasm",
		Args:    exactly(1, "one file"),
		RunE:    func(_ *cobra.Command, args []string) error { return sign(std, keyFile, args[0]) },
	}
	cmd.Flags().StringVar(&keyFile, "key", "weir.key", "the private key, made by weir keygen")
	return cmd
}

func sign(std streams, keyFile, path string) error {
	text, err := readKey(keyFile)
	if err != nil {
		return usagef("--key: %w; weir keygen makes a pair", err)
	}
	key, err := trust.ParsePrivateKey(text)
	if err != nil {
		return usagef("--key %s: %w", keyFile, err)
	}
	if info, err := os.Stat(keyFile); err == nil && runtime.GOOS != "windows" && info.Mode().Perm()&0o077 != 0 {
		fmt.Fprintf(std.err, "weir: warning: others than you may read %s; make it private with chmod 600\n", keyFile)
	}
	wasm, err := readModule(path)
	if err != nil {
		return err
	}
	if !bytes.HasPrefix(wasm, []byte("\x00asm")) {
		return usagef("%s is no WebAssembly module", path)
	}
	signature := key.Sign(wasm)
	if err := replaceFile(path+".sig", signature.String()+"\n"); err != nil {
		return err
	}
	_, err = fmt.Fprintf(std.out, "%s.sig: signed with key %s\n", path, signature.KeyID())
	return err
}

// replaceFile puts a file into place in one step: a weir that watches the folder
// never sees half of it.
func replaceFile(path, content string) error {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) // gone already when all went well
	_, err = f.WriteString(content)
	if e := f.Chmod(0o644); err == nil {
		err = e
	}
	if e := f.Close(); err == nil {
		err = e
	}
	if err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}
