package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/weir-mcp/weir/abi"
	"github.com/weir-mcp/weir/internal/config"
	"github.com/weir-mcp/weir/runtime"
)

func newInspect(std streams) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "inspect FILE.wasm",
		Short: "Show what a module needs, offers and is",
		Long: "inspect reads a module without serving it: its flavour, what it imports and the grants that takes, its exports,\n" +
			"its interceptors, digest and size, and how it is reset between calls. It exits with 1 when the module would not load.",
		Args: exactly(1, "one file"),
		RunE: func(cmd *cobra.Command, args []string) error {
			wasm, err := readModule(args[0])
			if err != nil {
				return err
			}
			facts, err := runtime.Inspect(wasm)
			if err != nil {
				return fmt.Errorf("%s: %w", args[0], err)
			}
			i := inspection(args[0], facts)
			var refused error
			if i.Interceptors, refused = describe(cmd.Context(), std, args[0], wasm); refused != nil {
				i.Refused = refused.Error()
			}
			if asJSON {
				err = writeJSON(std, i)
			} else {
				err = i.print(std)
			}
			if err == nil && refused != nil {
				return refused
			}
			return err
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// readModule reads a file that may be no larger than a module.
func readModule(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, usageError{err}
	}
	if !info.Mode().IsRegular() {
		return nil, usagef("%s is no regular file; give one .wasm file", path)
	}
	if limit := runtime.DefaultLimits().ModuleBytes; info.Size() > limit {
		return nil, fmt.Errorf("%s has %d bytes; a module may have %d", path, info.Size(), limit)
	}
	return os.ReadFile(path)
}

// describe loads the module, under the default limits and with grants that have
// nothing behind them, and asks what it offers. Its name is the file's alone, as
// in a weir.yaml.
func describe(ctx context.Context, std streams, path string, wasm []byte) ([]abi.Descriptor, error) {
	box, err := newSandbox(std, newLogger(std.err, slog.LevelWarn), config.Default())
	if err != nil {
		return nil, err
	}
	defer box.Close(context.WithoutCancel(ctx))
	module, err := box.Load(ctx, wasm, runtime.ModuleOptions{
		Name: filepath.Base(path), Limits: runtime.DefaultLimits(), Grants: runtime.Granted(),
	})
	if err != nil {
		return nil, err
	}
	defer module.Close(context.WithoutCancel(ctx))
	return module.Descriptors(), nil
}

// inspected is the shape of weir inspect --json.
type inspected struct {
	File         string           `json:"file"`
	SHA256       string           `json:"sha256"`
	Size         int64            `json:"size"`
	Flavour      string           `json:"flavour,omitempty"`
	Reset        string           `json:"reset"`
	MemoryMin    int64            `json:"memoryMin"`
	MemoryMax    int64            `json:"memoryMax,omitempty"`
	Functions    int              `json:"functions"`
	LargestBody  int              `json:"largestBody"`
	Imports      []inspectedEntry `json:"imports,omitempty"`
	Exports      []inspectedEntry `json:"exports,omitempty"`
	Interceptors []abi.Descriptor `json:"interceptors,omitempty"`
	Refused      string           `json:"refused,omitempty"`
}

type inspectedEntry struct {
	Module  string `json:"module,omitempty"`
	Name    string `json:"name"`
	Type    string `json:"type"`
	Grant   string `json:"grant,omitempty"`
	Problem string `json:"problem,omitempty"`
}

func inspection(path string, f runtime.Facts) inspected {
	i := inspected{
		File: path, SHA256: f.Digest, Size: f.Size, Flavour: string(f.Flavour), Reset: f.Reset,
		MemoryMin: f.MemoryMin, MemoryMax: f.MemoryMax, Functions: f.Functions, LargestBody: f.LargestBody,
	}
	for _, e := range f.Imports {
		i.Imports = append(i.Imports, inspectedEntry{e.Module, e.Name, e.Type, e.Grant, e.Problem})
	}
	for _, e := range f.Exports {
		i.Exports = append(i.Exports, inspectedEntry{Name: e.Name, Type: e.Type})
	}
	return i
}

func (i inspected) print(std streams) error {
	w := tabwriter.NewWriter(std.out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "file\t%s\nsha256\t%s\nsize\t%d bytes\nflavour\t%s\nreset\t%s\nmemory\t%s\nfunctions\t%d, the largest %d bytes\n",
		i.File, i.SHA256, i.Size, i.Flavour, i.Reset, i.memory(), i.Functions, i.LargestBody)
	for _, e := range i.Imports {
		fmt.Fprintf(w, "import\t%s.%s %s%s\n", printable(e.Module), printable(e.Name), e.Type, printable(e.remark()))
	}
	for _, line := range i.grantLines() {
		fmt.Fprintf(w, "to grant\t%s\n", line)
	}
	for _, e := range i.Exports {
		fmt.Fprintf(w, "export\t%s %s\n", printable(e.Name), e.Type)
	}
	for _, d := range i.Interceptors {
		fmt.Fprintf(w, "interceptor\t%s (%s) %s\n", printable(d.Name), d.Type, hooksText(d.Hooks))
	}
	if i.Refused != "" {
		for n, line := range strings.Split(i.Refused, "\n") {
			name := ""
			if n == 0 {
				name = "refused"
			}
			fmt.Fprintf(w, "%s\t%s\n", name, printable(line))
		}
	}
	return w.Flush()
}

// grantLines is what in weir.yaml gives the module what it imports.
func (i inspected) grantLines() (lines []string) {
	for _, e := range i.Imports {
		if line := runtime.GrantLine(filepath.Base(i.File), e.Grant); e.Grant != "" && e.Problem == "" && !slices.Contains(lines, line) {
			lines = append(lines, line)
		}
	}
	return lines
}

func (i inspected) memory() string {
	if i.MemoryMax == 0 {
		return fmt.Sprintf("at least %d bytes", i.MemoryMin)
	}
	return fmt.Sprintf("%d to %d bytes", i.MemoryMin, i.MemoryMax)
}

func (e inspectedEntry) remark() string {
	switch {
	case e.Problem != "":
		return ": " + e.Problem
	case e.Grant != "":
		return " (grant " + e.Grant + ")"
	}
	return ""
}
