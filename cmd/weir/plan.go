package main

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/weir-mcp/weir/abi"
	"github.com/weir-mcp/weir/gateway/chain"
	"github.com/weir-mcp/weir/gateway/relay"
	"github.com/weir-mcp/weir/internal/config"
)

// planTime bounds how long `weir plan` waits for the hosts.
const planTime = 15 * time.Second

func newPlan(std streams) *cobra.Command {
	var flags chainFlags
	var event, phase string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "plan",
		Short: "Show the ordered chain for each event and phase",
		Long: "plan asks every host what it offers and shows the chain that the gateway would run: order, host and effective\n" +
			"policy of each interceptor and where that came from, and what was left out and why.",
		Example: "  weir plan --config weir.yaml\n  weir plan --hosts ./interceptors --event tools/call --phase request",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return usagef("%s takes flags only; did you mean --hosts %s?", cmd.CommandPath(), args[0])
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			if event != "" {
				if err := checkEvent(std, event); err != nil {
					return err
				}
			}
			if phase != "" && !abi.Phase(phase).Valid() {
				return usagef("--phase %q is neither request nor response", phase)
			}
			file, err := flags.load(config.Flags{})
			if err != nil {
				return err
			}
			if len(file.Hosts) == 0 {
				return usagef("no hosts: give --hosts DIR|URL or a --config with hosts")
			}
			p, err := plansOf(cmd.Context(), std, file, event, abi.Phase(phase))
			if err != nil {
				return err
			}
			if asJSON {
				return writeJSON(std, p)
			}
			return p.print(std)
		},
	}
	flags.add(cmd)
	cmd.Flags().StringVar(&event, "event", "", "only this event")
	cmd.Flags().StringVar(&phase, "phase", "", "only this phase: request or response")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// planned is the shape of weir plan --json.
type planned struct {
	Plans []*chain.Plan `json:"plans"`
	// Warnings says what is wrong with the policy, as far as the lists tell, and
	// which modules it keeps out of service.
	Warnings []string `json:"warnings,omitempty"`
}

// plansOf makes the plans of all events in question, those that do nothing left
// out unless they were asked for by name.
func plansOf(ctx context.Context, std streams, file *config.File, event string, phase abi.Phase) (*planned, error) {
	a, err := assemble(ctx, std, newMaskedLogger(std.err, slog.LevelWarn, maskOf(file)), file)
	if err != nil {
		return nil, err
	}
	defer a.close(ctx)
	ctx, cancel := context.WithTimeout(ctx, planTime)
	defer cancel()
	listings, _ := a.hosts.Listings(ctx)

	all := &planned{Plans: []*chain.Plan{}, Warnings: append(a.refusals(), a.warnings(listings, file.Boundary)...)}
	for _, e := range eventsToPlan(listings, event) {
		for _, p := range []abi.Phase{abi.Request, abi.Response} {
			if phase != "" && p != phase {
				continue
			}
			plan := a.plan(listings, file.Boundary, e, p)
			if event != "" || !plan.Empty() {
				all.Plans = append(all.Plans, plan)
			}
		}
	}
	return all, nil
}

// eventsToPlan is the events of protocol.md §1 that a gateway meets, and the
// custom ones that somebody hooks by name.
func eventsToPlan(listings []chain.Listing, only string) []string {
	if only != "" {
		return []string{only}
	}
	var custom []string
	for _, l := range listings {
		for _, hooked := range abi.SupportedEvents(l.Interceptors) {
			if abi.IsEvent(hooked) && !slices.Contains(mcpEvents, hooked) {
				custom = append(custom, hooked)
			}
		}
	}
	slices.Sort(custom)
	return slices.Concat(mcpEvents, slices.Compact(custom))
}

// directionOf is the direction in which the gateway meets an event: sampling,
// elicitation and roots are asked for by the server (protocol.md §6).
func directionOf(boundary config.Boundary, event string, phase abi.Phase) abi.Direction {
	initiator := relay.Client
	switch event {
	case abi.SamplingCreate, abi.ElicitationCreate, abi.RootsList:
		initiator = relay.Backend
	}
	guard := relay.GuardClient
	if boundary == config.Server {
		guard = relay.GuardBackend
	}
	return guard.Direction(initiator, phase)
}

func (p *planned) print(std streams) error {
	for _, w := range p.Warnings {
		fmt.Fprintf(std.out, "warning: %s\n", printable(w))
	}
	if len(p.Plans) == 0 {
		_, err := fmt.Fprintln(std.out, "nothing is governed: no interceptor hooks any event")
		return err
	}
	for i, plan := range p.Plans {
		if i > 0 {
			fmt.Fprintln(std.out)
		}
		if err := printPlan(std, plan); err != nil {
			return err
		}
	}
	return nil
}

func printPlan(std streams, plan *chain.Plan) error {
	fmt.Fprintf(std.out, "%s %s (%s)\n", printable(plan.Event()), plan.Phase(), plan.Direction())
	w := tabwriter.NewWriter(std.out, 0, 0, 2, ' ', 0)
	for i, s := range plan.Steps() {
		fmt.Fprintf(w, "  %d.\t%s\t%s\t%s\t%s\n", i+1, s.Type, printable(s.Name), "on "+s.Host, settingsText(&s))
		if s.Refused != nil {
			fmt.Fprintf(w, "\t\t\t\tfails: %s\n", printable(s.Refused.Error()))
		}
	}
	if plan.Empty() {
		fmt.Fprintln(w, "  passes untouched")
	}
	for _, f := range plan.Failures() {
		fmt.Fprintf(w, "  blocked\t%s\t%s\t%s\n", f.Reason, printable(cmp.Or(f.Interceptor, f.Host)), printable(f.Detail))
	}
	for _, l := range plan.LeftOut() {
		fmt.Fprintf(w, "  left out\t%s\t%s\t%s\t%s\n", l.Type, printable(l.Name), "on "+l.Host, detailed(string(l.Reason), printable(l.Detail)))
	}
	return w.Flush()
}

func detailed(reason, detail string) string {
	if detail == "" {
		return reason
	}
	return reason + ": " + detail
}

// settingsText shows what holds for a step and, of what is not the default,
// where it came from.
func settingsText(s *chain.Step) string {
	text := string(s.Mode.Value) + from(s.Mode.From)
	if s.Type != abi.Sink { // which blocks nothing, failing or not
		text += ", fails " + failsText(s.FailOpen.Value) + from(s.FailOpen.From)
	}
	if s.Type == abi.Mutation {
		text += ", priority " + strconv.Itoa(int(s.Priority.Value)) + from(s.Priority.From)
	}
	if s.Timeout.Value > 0 {
		text += ", timeout " + s.Timeout.Value.String() + from(s.Timeout.From)
	}
	if s.Config.Value != nil {
		text += ", config " + string(s.ConfigShown) + from(s.Config.From)
	}
	if s.Hooks.From.Origin == chain.FromPolicy {
		text += ", hooks " + hooksText(s.Hooks.Value) + from(s.Hooks.From)
	}
	return text
}

func from(f chain.From) string {
	if f.Origin == chain.FromDefault {
		return ""
	}
	return " (" + f.String() + ")"
}
