package conformance

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-mcp/weir/abi"
	"github.com/weir-mcp/weir/gateway/chain"
	"github.com/weir-mcp/weir/gateway/hosts"
	"github.com/weir-mcp/weir/internal/conformance/mockhost"
)

var silent = slog.New(slog.DiscardHandler)

// patience is an outer limit, never a measure.
const patience = 30 * time.Second

// What a process that is a host is told by its environment: the case, which of
// its hosts it is, and its folder.
const (
	envCase   = "WEIR_CONFORMANCE_CASE"
	envHost   = "WEIR_CONFORMANCE_HOST"
	envFolder = "WEIR_CONFORMANCE_FOLDER"
)

// ServeIfAsked is the first thing in the TestMain of a package that uses
// [Stdio]: where this process is to be a host of one of the cases it serves it,
// and exits.
func ServeIfAsked(cases []Case) {
	name, label := os.Getenv(envCase), os.Getenv(envHost)
	if name == "" {
		return
	}
	const unknown, away = 2, 4
	f := folder(os.Getenv(envFolder))
	if f.has(isAway) {
		os.Exit(away)
	}
	for _, c := range cases {
		if c.Name != name {
			continue
		}
		for _, h := range c.Hosts() {
			if h.Label == label {
				h.Record, h.Hold = f.record, f.hold
				os.Exit(h.ServeStdio())
			}
		}
	}
	os.Exit(unknown)
}

// folder is what a test and a host share, be that a process or not: files in it
// say what the host is to do, or what it has done.
type folder string

// The files of a folder.
const (
	isAway  = "away"    // the host does not start, or cuts every connection
	isSlow  = "slow"    // the host answers no list
	listing = "listing" // the host was asked for its list
	called  = "calls"   // one a line, as they came
)

func (f folder) has(file string) bool {
	_, err := os.Stat(filepath.Join(string(f), file))
	return err == nil
}

// hold waits for as long as the host is slow.
func (f folder) hold() {
	f.append(listing, nil)
	for f.has(isSlow) {
		time.Sleep(time.Millisecond) // nothing tells when a file is gone
	}
}

// record keeps a call before it runs, so that a process that dies of one has
// recorded it.
func (f folder) record(inv abi.Invocation) { f.append(called, append(inv.AppendJSON(nil), '\n')) }

func (f folder) append(name string, line []byte) {
	file, err := os.OpenFile(filepath.Join(string(f), name), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err == nil {
		_, err = file.Write(line)
	}
	if err == nil {
		err = file.Close()
	}
	if err != nil {
		panic(err) // a host that cannot record proves nothing
	}
}

// Reached is a host of a case that can be reached.
type Reached struct {
	Host   *hosts.Host
	folder folder
}

// set makes the host away or slow; unset takes it back.
func (r *Reached) set(file string) { r.folder.append(file, nil) }

func (r *Reached) unset(t testing.TB, file string) {
	t.Helper()
	require.NoError(t, os.Remove(filepath.Join(string(r.folder), file)))
}

// calls gives what the host has been asked.
func (r *Reached) calls(t testing.TB) (calls []abi.Invocation) {
	t.Helper()
	if !r.folder.has(called) {
		return nil
	}
	lines, err := os.ReadFile(filepath.Join(string(r.folder), called))
	require.NoError(t, err)
	for line := range bytes.Lines(lines) {
		inv, err := abi.ReadInvocation(bytes.TrimSuffix(line, []byte("\n")))
		require.NoError(t, err)
		calls = append(calls, inv)
	}
	return calls
}

// Transport makes a host of a case reachable, as gateway/hosts knows it.
type Transport func(t *testing.T, c *Case, h *mockhost.Host) *Reached

// Stdio runs the host as a process of its own: this test binary.
func Stdio(t *testing.T, c *Case, h *mockhost.Host) *Reached {
	self, err := os.Executable()
	require.NoError(t, err)
	r := &Reached{folder: folder(t.TempDir())}
	r.Host = hosts.Stdio(h.Label, hosts.Process{Command: []string{self}, Env: hosts.Environment(map[string]string{
		envCase: c.Name, envHost: h.Label, envFolder: string(r.folder),
		"GORACE": "atexit_sleep_ms=0", // of which each process would sleep 1 s
	})}, hosts.Options{FailOpen: h.FailOpen, Logger: silent})
	return r
}

// HTTP serves the host on a web server, with sessions and event streams.
func HTTP(t *testing.T, _ *Case, h *mockhost.Host) *Reached { return web(t, h, false) }

// StatelessHTTP serves the host on a web server that keeps no sessions and
// answers in JSON.
func StatelessHTTP(t *testing.T, _ *Case, h *mockhost.Host) *Reached { return web(t, h, true) }

func web(t *testing.T, h *mockhost.Host, stateless bool) *Reached {
	r := &Reached{folder: folder(t.TempDir())}
	h.Record, h.Hold = r.folder.record, r.folder.hold
	server := h.ServeHTTP(t, stateless, func() bool { return r.folder.has(isAway) })
	r.Host = hosts.HTTP(h.Label, hosts.Endpoint{URL: server.URL}, hosts.Options{FailOpen: h.FailOpen, Logger: silent})
	return r
}

// stretched is how much longer deadlines are made at most, where a machine is so
// busy that what should take no time passes them.
const stretched = 16

// Over runs the case over real connections. Deadlines pass in real time there:
// where they came before what they should not, the case runs again with longer
// ones, which change nothing about what must come of it.
func (c *Case) Over(t *testing.T, over Transport) {
	t.Helper()
	if c.InProcess != "" {
		return
	}
	for stretch := time.Duration(1); ; stretch *= 4 {
		got := c.stretch(stretch).attempt(t, over)
		if got == c.ending() || stretch == stretched || !c.timed() {
			require.Equal(t, c.ending(), got)
			return
		}
		t.Logf("once more, with longer deadlines, after %+v", got)
	}
}

// timed reports whether what comes of the case depends on time.
func (c *Case) timed() bool {
	return c.Timeout > 0 || c.Cancel > 0 || slices.ContainsFunc(c.Policy, func(e chain.Entry) bool { return e.Timeout != nil })
}

// stretch is the case with longer deadlines.
func (c *Case) stretch(factor time.Duration) *Case {
	longer := *c
	longer.Timeout *= factor
	longer.Policy = slices.Clone(c.Policy)
	for i := range longer.Policy {
		if own := longer.Policy[i].Timeout; own != nil {
			longer.Policy[i].Timeout = ptr(*own * factor)
		}
	}
	return &longer
}

// attempt runs the case once and gives what came of it.
func (c *Case) attempt(t *testing.T, over Transport) ending {
	t.Helper()
	scripted := c.Hosts()
	var list []*hosts.Host
	var reached []*Reached
	for _, h := range scripted {
		r := over(t, c, h)
		list, reached = append(list, r.Host), append(reached, r)
	}
	set := hosts.NewSet(list, hosts.SetOptions{})
	shut := sync.OnceFunc(func() { require.NoError(t, set.Close(context.Background())) })
	defer shut()
	asking, stop := context.WithTimeout(t.Context(), patience)
	defer stop()
	listings, version := set.Listings(asking)
	require.NotZero(t, version, "the hosts are listed")

	plan := c.plan(t, listings)
	sinks := chain.NewSinks(chain.SinkOptions{})
	ctx, cancel := context.WithCancel(asking)
	defer cancel()
	if c.Cancel > 0 {
		defer time.AfterFunc(c.Cancel, cancel).Stop()
	}
	out := chain.NewExecutor(chain.Options{Sinks: sinks}).Execute(ctx, plan, c.operation())

	asked := func() (records []record) {
		for i, h := range scripted {
			records = append(records, record{h.Label, reached[i].calls(t)})
		}
		return records
	}
	if c.Effects == Effects(&out) { // else the calls are others, too
		// The calls of sinks are on their way; nothing else is.
		require.Eventually(t, func() bool { return len(calls(asked())) >= len(c.Calls) }, patience, 5*time.Millisecond, "calls")
	}
	now, cut := context.WithCancel(context.Background())
	cut() // a sink that takes ten seconds is not waited for
	_ = sinks.Drain(now)
	shut()
	records := asked()
	c.checkCalls(t, records)
	return endingOf(&out, records)
}
