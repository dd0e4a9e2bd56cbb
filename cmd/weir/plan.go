package main

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strconv"
	"strings"
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
	var event, phase, protocol string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "plan",
		Short: "Show the ordered chain for each event and phase",
		Long: "plan asks every host what it offers and shows the chain that the gateway would run: order, host and effective\n" +
			"policy of each interceptor and where that came from, and what was left out and why. It begins with what is wrong:\n" +
			"modules that are refused, hosts that are down, policy that matches nothing. That is part of the answer, and no failure\n" +
			"of the command: a plan that can be shown exits with 0.",
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
			if protocol != "" {
				if _, err := time.Parse(time.DateOnly, protocol); err != nil {
					return usagef("--protocol %q is no protocol version such as 2025-11-25", protocol)
				}
			}
			file, err := flags.load(config.Flags{})
			if err != nil {
				return err
			}
			if len(file.Hosts) == 0 {
				return usagef("no hosts: give --hosts DIR|URL or a --config with hosts")
			}
			p, err := plansOf(cmd.Context(), std, file, event, abi.Phase(phase), protocol)
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
	cmd.Flags().StringVar(&protocol, "protocol", "", "the plans of sessions that negotiate this protocol version, such as 2025-11-25;\nwithout it, an interceptor's own range leaves nothing out")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// planned is the shape of weir plan --json.
type planned struct {
	Plans []*chain.Plan `json:"plans"`
	// LeftOut is what has a part in none of the plans, and why; where one event
	// was asked for, the plans alone say so.
	LeftOut []chain.LeftOut `json:"leftOut,omitempty"`
	// Warnings says which modules are refused and which hosts are down, and what is
	// wrong with the policy, as far as the lists tell.
	Warnings []string `json:"warnings,omitempty"`
}

// plansOf makes the plans of all events in question, those that do nothing left
// out unless they were asked for by name.
func plansOf(ctx context.Context, std streams, file *config.File, event string, phase abi.Phase, protocol string) (*planned, error) {
	a, err := assemble(ctx, std, newMaskedLogger(std.err, slog.LevelWarn, maskOf(file)), file)
	if err != nil {
		return nil, err
	}
	defer a.close(ctx)
	ctx, cancel := context.WithTimeout(ctx, planTime)
	defer cancel()
	listings, _ := a.hosts.Listings(ctx)

	all := &planned{Plans: []*chain.Plan{}, Warnings: append(a.refusals(), downHosts(listings)...)}
	for _, u := range a.policy.Unmatched(listings) {
		all.Warnings = append(all.Warnings, u.String())
	}
	all.Warnings = append(all.Warnings, a.warnings(listings, file.Boundary)...)
	var idle idlers
	events, more := eventsToPlan(listings, event)
	if more > 0 {
		all.Warnings = append(all.Warnings, fmt.Sprintf("%d more custom events are hooked by name than are shown; --event shows the plan of one", more))
	}
	for _, e := range events {
		for _, p := range []abi.Phase{abi.Request, abi.Response} {
			if phase != "" && p != phase {
				continue
			}
			plan := chain.NewPlan(listings, a.policy, e, p, directionOf(file.Boundary, e, p), protocol)
			idle.see(plan)
			if event != "" || !plan.Empty() {
				all.Plans = append(all.Plans, plan)
			}
		}
	}
	if event == "" {
		all.LeftOut = idle.list()
	}
	return all, nil
}

// idlers collects what has a part in no plan.
type idlers struct {
	order []interceptorOn
	left  map[interceptorOn]chain.LeftOut
	runs  map[interceptorOn]bool
}

type interceptorOn struct{ name, host string }

func (i *idlers) see(p *chain.Plan) {
	if i.left == nil {
		i.left, i.runs = map[interceptorOn]chain.LeftOut{}, map[interceptorOn]bool{}
	}
	for _, s := range p.Steps() {
		i.runs[interceptorOn{s.Name, s.Host}] = true
	}
	for _, l := range p.LeftOut() {
		who := interceptorOn{l.Name, l.Host}
		before, seen := i.left[who]
		if !seen {
			i.order = append(i.order, who)
		}
		// Not to hook an event is no reason where there is another one.
		if !seen || before.Reason == chain.NotHooked {
			i.left[who] = l
		}
	}
}

func (i *idlers) list() (list []chain.LeftOut) {
	for _, who := range i.order {
		if !i.runs[who] {
			list = append(list, i.left[who])
		}
	}
	return list
}

// mostCustom bounds the custom events that are planned without being asked for by
// name: a host elsewhere may list any number, and each costs two plans.
const mostCustom = 100

// eventsToPlan is the events of protocol.md §1 that a gateway meets, and the
// custom ones that somebody hooks by name, the first [mostCustom] of them; more is
// how many there are besides.
func eventsToPlan(listings []chain.Listing, only string) (events []string, more int) {
	if only != "" {
		return []string{only}, 0
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
	custom = slices.Compact(custom)
	shown := min(len(custom), mostCustom)
	return slices.Concat(mcpEvents, custom[:shown]), len(custom) - shown
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
		fmt.Fprintln(std.out, "nothing is governed: no interceptor has a part in the plan of any event")
	}
	for i, plan := range p.Plans {
		if i > 0 {
			fmt.Fprintln(std.out)
		}
		if err := printPlan(std, plan); err != nil {
			return err
		}
	}
	if len(p.LeftOut) == 0 {
		return nil
	}
	fmt.Fprintln(std.out, "\nin no plan")
	w := tabwriter.NewWriter(std.out, 0, 0, 2, ' ', 0)
	printLeftOut(w, p.LeftOut)
	return w.Flush()
}

func printPlan(std streams, plan *chain.Plan) error {
	fmt.Fprintf(std.out, "%s %s (%s)\n", printable(plan.Event()), plan.Phase(), plan.Direction())
	if err := printSteps(std, plan); err != nil {
		return err
	}
	w := tabwriter.NewWriter(std.out, 0, 0, 2, ' ', 0)
	if plan.Empty() {
		fmt.Fprintln(w, "  passes untouched")
	}
	for _, f := range plan.Failures() {
		if f.Reason == chain.NotListed {
			f.Detail = "" // said once, before the plans
		}
		fmt.Fprintln(w, strings.TrimRight(fmt.Sprintf("  blocked\t%s\t%s\t%s", f.Reason, printable(cmp.Or(f.Interceptor, f.Host)), printable(f.Detail)), "\t"))
	}
	printLeftOut(w, plan.LeftOut())
	return w.Flush()
}

func printLeftOut(w io.Writer, list []chain.LeftOut) {
	for _, l := range list {
		fmt.Fprintf(w, "  left out\t%s\t%s\t%s\t%s\n", l.Type, printable(l.Name), "on "+l.Host, detailed(string(l.Reason), printable(l.Detail)))
	}
}

// printSteps writes the steps, and beneath each what holds for it, by where that
// came from.
func printSteps(std streams, plan *chain.Plan) error {
	steps := plan.Steps()
	var b bytes.Buffer
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	for i, s := range steps {
		name := printable(s.Name)
		if s.Name != s.Interceptor {
			name += " (a copy of " + printable(s.Interceptor) + ")"
		}
		fmt.Fprintf(w, "  %d.\t%s\t%s\ton %s\n", i+1, s.Type, name, s.Host)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	heads := strings.SplitAfter(b.String(), "\n")
	for i := range steps {
		s := &steps[i]
		fmt.Fprint(std.out, heads[i])
		settings := settingsOf(s, plan)
		width := 0
		for _, o := range settings {
			width = max(width, len(o.from))
		}
		for _, o := range settings {
			fmt.Fprintf(std.out, "        %-*s  %s\n", width, o.from, strings.Join(o.texts, ", "))
		}
		if s.Refused != nil {
			fmt.Fprintf(std.out, "        fails: %s\n", printable(s.Refused.Error()))
		}
	}
	return nil
}

func detailed(reason, detail string) string {
	if detail == "" {
		return reason
	}
	return reason + ": " + detail
}

// origin is what came from one place: an entry of policy, the author, or the
// default.
type origin struct {
	from  string
	texts []string
}

// settingsOf tells what holds for a step, the entries of policy first, then the
// author's word, then the defaults. Of the hooks it tells those that make it part
// of the plan; --json has them all.
func settingsOf(s *chain.Step, plan *chain.Plan) []origin {
	var all []origin
	add := func(from chain.From, text string) {
		i := slices.IndexFunc(all, func(o origin) bool { return o.from == from.String() })
		if i < 0 {
			all = append(all, origin{from: from.String()})
			i = len(all) - 1
		}
		all[i].texts = append(all[i].texts, text)
	}
	author := chain.From{Origin: chain.FromAuthor}
	if c := s.Compat; c != nil && c.MaxProtocol == "" {
		add(author, "from protocol "+c.MinProtocol+" on")
	} else if c != nil {
		add(author, "for protocol "+c.MinProtocol+" to "+c.MaxProtocol)
	}
	add(s.Mode.From, string(s.Mode.Value))
	if s.Type != abi.Sink { // which blocks nothing, failing or not
		add(s.FailOpen.From, "fails "+failsText(s.FailOpen.Value))
	}
	if s.Type == abi.Mutation {
		add(s.Priority.From, "priority "+strconv.Itoa(int(s.Priority.Value)))
	}
	timeout, config, required := "no timeout", "no config", "not required"
	if s.Timeout.Value > 0 {
		timeout = "timeout " + s.Timeout.Value.String()
	}
	if s.Config.Value != nil {
		config = "config " + printable(string(s.ConfigShown))
	}
	if s.Required.Value {
		required = "required"
	}
	add(s.Timeout.From, timeout)
	add(s.Config.From, config)
	var hooks []string
	for _, h := range s.Hooks.Value {
		for _, pattern := range h.Events {
			if h.Phase == plan.Phase() && abi.MatchEvent(pattern, plan.Event()) {
				hooks = append(hooks, printable(pattern))
			}
		}
	}
	add(s.Hooks.From, "hooks "+strings.Join(hooks, ", "))
	add(s.Required.From, required)
	rank := func(o origin) int { return slices.Index([]string{"author", "default"}, o.from) }
	slices.SortStableFunc(all, func(a, b origin) int { return cmp.Compare(rank(a), rank(b)) })
	return all
}
