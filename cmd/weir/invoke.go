package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/weir-mcp/weir/abi"
	"github.com/weir-mcp/weir/internal/wire"
)

// maxPayload bounds what weir invoke reads: the largest input of abi.md.
const maxPayload = 4 << 20

func newInvoke(std streams) *cobra.Command {
	var (
		event, phase, payload, conf, path string
		timeout                           time.Duration
	)
	cmd := &cobra.Command{
		Use:   "invoke NAME --event E --phase P TARGET",
		Short: "Call one interceptor once and print its result",
		Long: "invoke calls the interceptor NAME of TARGET and prints its result as JSON. It exits with 0 whatever the verdict,\n" +
			"and with 1 when there is no result: {\"error\":…} is printed then.",
		Example: "  echo '{\"name\":\"send\",\"arguments\":{\"to\":\"ann@example.com\"}}' |\n" +
			"    weir invoke pii-redactor --event tools/call --phase request --payload - ./interceptors",
		RunE: func(cmd *cobra.Command, args []string) error {
			before, where, command, err := targetArgs(cmd, args, "NAME")
			if err != nil {
				return err
			}
			inv, err := invocation(std, before[0], event, phase, payload, conf, timeout)
			if err != nil {
				return err
			}
			t, err := openTarget(cmd.Context(), std, where, command, path)
			if err != nil {
				return err
			}
			defer t.close()
			result, err := t.invoke(cmd.Context(), inv)
			if err != nil {
				return printFailure(std, abi.AsError(err, inv.Name, inv.Phase))
			}
			_, err = std.out.Write(append(result.AppendJSON(nil), '\n'))
			return err
		},
	}
	cmd.Flags().StringVar(&event, "event", "", "the event, such as tools/call")
	cmd.Flags().StringVar(&phase, "phase", "", "request or response")
	cmd.Flags().StringVar(&payload, "payload", "", "the file that holds the payload as JSON, - for stdin; {} by default")
	cmd.Flags().StringVar(&conf, "config", "", "the interceptor's configuration, a JSON object")
	cmd.Flags().StringVar(&path, "settings", "", "the weir.yaml with limits, grants, pins and trust of a folder or file")
	cmd.Flags().DurationVar(&timeout, "timeout", 0, "how long to wait for the answer, such as 200ms; no limit but the interceptor's own by default")
	return cmd
}

// invocation checks the flags; what is wrong with them is wrong usage.
func invocation(std streams, name, event, phase, payload, conf string, timeout time.Duration) (abi.Invocation, error) {
	inv := abi.Invocation{Name: name, Event: event, Phase: abi.Phase(phase), Payload: json.RawMessage("{}"), Timeout: timeout}
	if err := checkEvent(std, event); err != nil {
		return inv, err
	}
	switch {
	case phase == "":
		return inv, usagef("--phase is missing; it is request or response")
	case !inv.Phase.Valid():
		return inv, usagef("--phase %q is neither request nor response", phase)
	case timeout < 0:
		return inv, usagef("--timeout %v is negative", timeout)
	}
	if payload != "" {
		b, err := readPayload(std, payload)
		if err != nil {
			return inv, err
		}
		if err := wire.Strict(b); err != nil {
			return inv, usagef("--payload %s: %w", payload, err)
		}
		inv.Payload = bytes.TrimSpace(b)
	}
	if conf != "" {
		if err := wire.Strict([]byte(conf)); err != nil {
			return inv, usagef("--config: %w", err)
		}
		inv.Config = json.RawMessage(conf)
	}
	return inv, nil
}

func readPayload(std streams, from string) ([]byte, error) {
	in := io.Reader(std.in)
	if from != "-" {
		file, err := os.Open(from)
		if err != nil {
			return nil, usageError{err}
		}
		defer file.Close()
		in = file
	}
	b, err := io.ReadAll(io.LimitReader(in, maxPayload+1))
	if err != nil {
		return nil, err
	}
	if len(b) > maxPayload {
		return nil, usageError{errors.New("the payload is larger than 4 MiB")}
	}
	return b, nil
}

// printFailure prints {"error":…} on stdout, and what lies behind it on stderr:
// whoever runs weir invoke is the operator.
func printFailure(std streams, e *abi.Error) error {
	fmt.Fprintf(std.err, "weir: %v\n", e)
	if _, err := std.out.Write(append(appendRPCError(nil, e), '\n')); err != nil {
		return err
	}
	return rpcFailure{e}
}
