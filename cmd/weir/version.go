package main

import (
	"context"
	"fmt"
	"log/slog"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/weir-mcp/weir/abi"
	"github.com/weir-mcp/weir/runtime/wazero"
)

// version is overwritten by release builds (-ldflags "-X main.version=…").
var version = ""

// buildVersion is what this binary calls itself, also towards MCP peers.
func buildVersion() string {
	if version != "" {
		return version
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "(devel)"
}

func newVersion(std streams) *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version, the engines and the module ABI",
		Args:  exactly(0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			engine, err := wazero.New(wazero.Options{Logger: newLogger(std.err, slog.LevelWarn)})
			if err != nil {
				return err
			}
			defer engine.Close(context.WithoutCancel(cmd.Context()))
			_, err = fmt.Fprintf(std.out, "weir %s\nengine %s\nmodule ABI %d\n%s %s/%s\n",
				buildVersion(), engine.Name(), abi.ABIVersion, runtime.Version(), runtime.GOOS, runtime.GOARCH)
			return err
		},
	}
}
