package main

import (
	"cmp"
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/weir-mcp/weir/abi"
)

func newList(std streams) *cobra.Command {
	var event, path string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "list TARGET",
		Short: "Show what TARGET offers",
		Long:  "list shows the interceptors of TARGET: a folder, a .wasm file, an http(s) URL, or, last, -- COMMAND ARG… (an\ninterceptor server over stdio). For a folder or a file it shows the digest of what would run, too.",
		Example: "  weir list ./interceptors\n  weir list --event tools/call https://sec.internal/mcp\n" +
			"  weir list -- ./legacy-interceptors --quiet",
		RunE: func(cmd *cobra.Command, args []string) error {
			if event != "" {
				if err := checkEvent(std, event); err != nil {
					return err
				}
			}
			_, where, command, err := targetArgs(cmd, args)
			if err != nil {
				return err
			}
			t, err := openTarget(cmd.Context(), std, where, command, path)
			if err != nil {
				return err
			}
			defer t.close()
			t.only(event)
			if asJSON {
				return writeJSON(std, t.listing())
			}
			return t.print(std)
		},
	}
	cmd.Flags().StringVar(&event, "event", "", "only interceptors that hook this event, such as tools/call")
	cmd.Flags().StringVar(&path, "config", "", "the weir.yaml with limits, grants, pins and trust of a folder or file")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// only keeps the interceptors that hook event, all of them when it is empty.
func (t *target) only(event string) {
	if event == "" {
		return
	}
	kept := t.interceptors[:0:0]
	for _, d := range t.interceptors {
		if d.Hooks.MatchEvent(event) {
			kept = append(kept, d)
		}
	}
	t.interceptors = kept
}

// listing is the shape of weir list --json.
type listing struct {
	Interceptors []abi.Descriptor `json:"interceptors"`
	Skipped      []skipped        `json:"skipped,omitempty"`
	Files        []file           `json:"files,omitempty"`
}

type skipped struct {
	Name   string `json:"name,omitempty"`
	Reason string `json:"reason"`
}

type file struct {
	File         string   `json:"file"`
	SHA256       string   `json:"sha256,omitempty"`
	Signer       string   `json:"signer,omitempty"` // id of the key
	Interceptors []string `json:"interceptors,omitempty"`
	Error        string   `json:"error,omitempty"`
}

func (t *target) listing() listing {
	l := listing{Interceptors: t.interceptors}
	if l.Interceptors == nil {
		l.Interceptors = []abi.Descriptor{}
	}
	for _, s := range t.skipped {
		l.Skipped = append(l.Skipped, skipped{s.Name, s.Err.Error()})
	}
	for _, f := range t.files {
		out := file{File: f.Name, SHA256: f.Digest, Signer: f.Signer, Interceptors: f.Interceptors}
		if f.Err != nil {
			out.Error = f.Err.Error()
		}
		l.Files = append(l.Files, out)
	}
	return l
}

func (t *target) print(std streams) error {
	w := tabwriter.NewWriter(std.out, 0, 0, 2, ' ', 0)
	if len(t.interceptors) == 0 {
		fmt.Fprintln(w, "no interceptors")
	}
	for _, d := range t.interceptors {
		fmt.Fprintln(w, headline(d))
		for _, h := range d.Hooks {
			fmt.Fprintf(w, "  %s\t%s\n", h.Phase, strings.Join(printables(h.Events), ", "))
		}
		if d.Description != "" {
			fmt.Fprintf(w, "  %s\n", printable(d.Description))
		}
	}
	if len(t.files) > 0 {
		fmt.Fprintln(w, "\nfile\tsha256\tinterceptors")
	}
	for _, f := range t.files {
		what := strings.Join(printables(f.Interceptors), ", ")
		if f.Signer != "" {
			what += " (signed with " + f.Signer + ")"
		}
		if f.Err != nil {
			why, _, _ := strings.Cut(f.Err.Error(), "\n")
			what = strings.TrimSpace(what + " refused: " + printable(why))
		}
		fmt.Fprintf(w, "%s\t%s\t%s\n", printable(f.Name), cmp.Or(f.Digest, "-"), what)
	}
	for _, s := range t.skipped {
		fmt.Fprintf(w, "\nskipped\t%s\t%s\n", printable(s.Name), printable(s.Err.Error()))
	}
	return w.Flush()
}

// headline is such as "pii-redactor 1.0.0: mutation, active, fails closed,
// priority -1000".
func headline(d abi.Descriptor) string {
	text := printable(d.Name)
	if d.Version != "" {
		text += " " + printable(d.Version)
	}
	mode := cmp.Or(d.Mode, abi.Active)
	text += ": " + string(d.Type) + ", " + string(mode)
	if d.Type != abi.Sink { // which blocks nothing, failing or not
		text += ", fails " + failsText(d.FailOpen)
	}
	if d.Type == abi.Mutation {
		text += ", priority " + string(d.PriorityHint.AppendJSON(nil))
	}
	return text
}

// hooksText is such as "request: tools/call, prompts/get; response: *".
func hooksText(hooks abi.Hooks) string {
	if len(hooks) == 0 {
		return "nothing"
	}
	parts := make([]string, len(hooks))
	for i, h := range hooks {
		parts[i] = string(h.Phase) + ": " + strings.Join(printables(h.Events), ", ")
	}
	return strings.Join(parts, "; ")
}

func failsText(open bool) string {
	if open {
		return "open"
	}
	return "closed"
}
