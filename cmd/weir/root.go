package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/weir-mcp/weir/abi"
)

// newRoot puts the commands together.
func newRoot(std streams) *cobra.Command {
	root := &cobra.Command{
		Use:   "weir",
		Short: "Sandboxed WebAssembly interceptors for the Model Context Protocol",
		Long: "weir serves folders of WebAssembly modules as interceptor servers, and puts a gateway in front of any\n" +
			"MCP server that runs one ordered chain of interceptors over what passes. Start with: weir demo",
		Version:       buildVersion(),
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          knownCommand,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SuggestionsMinimumDistance = 2
	root.SetIn(std.in)
	root.SetOut(std.out)
	root.SetErr(std.err)
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return usagef("%w; see %s --help", err, cmd.CommandPath())
	})
	root.AddCommand(
		newServe(std), newGateway(std), newList(std), newInvoke(std), newPlan(std), newInspect(std),
		newKeygen(std), newSign(std), newDemo(std), newDemoBackend(std), newVersion(std),
	)
	return root
}

// knownCommand refuses what is no command, with the nearest one that is.
func knownCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	hint := "see weir --help"
	if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
		hint = "did you mean " + strings.Join(near, " or ") + "?"
	}
	return usagef("%q is not a command of weir; %s", args[0], hint)
}

// checkEvent refuses what is no event, and warns of one that MCP does not
// define although it looks like it: nobody may hook it, and nothing would tell.
func checkEvent(std streams, event string) error {
	if event == "" {
		return usagef("--event is missing; name an event, such as tools/call")
	}
	if !abi.IsEvent(event) {
		return usagef("--event %q is not an event; name one, such as tools/call", event)
	}
	namespace, _, _ := strings.Cut(event, "/")
	if slices.Contains(mcpEvents, event) || !slices.ContainsFunc(mcpEvents, func(e string) bool { return strings.HasPrefix(e, namespace+"/") }) {
		return nil
	}
	fmt.Fprintf(std.err, "weir: warning: %s is not an event that MCP defines; it counts as a custom one\n", event)
	return nil
}

// mcpEvents are the events of protocol.md §1 that a gateway meets.
var mcpEvents = []string{
	abi.ToolsList, abi.ToolsCall, abi.PromptsList, abi.PromptsGet, abi.ResourcesList, abi.ResourcesRead,
	abi.ResourcesSubscribe, abi.SamplingCreate, abi.ElicitationCreate, abi.RootsList,
}

// exactly makes an argument check whose failure is wrong usage.
func exactly(n int, names string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) != n {
			return usagef("%s takes %s, got %d arguments; see %[1]s --help", cmd.CommandPath(), names, len(args))
		}
		return nil
	}
}

// afterDash splits what follows "--" from the arguments before it.
func afterDash(cmd *cobra.Command, args []string) (before, after []string, err error) {
	at := cmd.ArgsLenAtDash()
	if at < 0 {
		return args, nil, nil
	}
	if at == len(args) {
		return nil, nil, usageError{errors.New(`a command must follow "--"`)}
	}
	return args[:at], args[at:], nil
}
