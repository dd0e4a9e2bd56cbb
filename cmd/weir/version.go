package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"

	"github.com/weir-mcp/weir/abi"
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
			var text strings.Builder
			fmt.Fprintf(&text, "weir %s\n", buildVersion())
			for _, open := range builtIn {
				engine, err := open(newLogger(std.err, slog.LevelWarn))
				if err != nil {
					return err
				}
				fmt.Fprintf(&text, "engine %s\n", engine.Name())
				if err := engine.Close(context.WithoutCancel(cmd.Context())); err != nil {
					return err
				}
			}
			fmt.Fprintf(&text, "module ABI %d\n%s %s/%s\n", abi.ABIVersion, runtime.Version(), runtime.GOOS, runtime.GOARCH)
			_, err := io.WriteString(std.out, text.String())
			return err
		},
	}
}
