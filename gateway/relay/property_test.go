package relay

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-mcp/weir/abi"
	"github.com/weir-mcp/weir/internal/wire"
)

// talk makes up valid messages of every kind, in odd spellings.
type talk struct {
	*rand.Rand
	ids  int
	open [2][]string // ids of requests that arrived at that side
}

func (k *talk) pick(of ...string) string { return of[k.IntN(len(of))] }

func (k *talk) value(depth int) string {
	switch n := k.IntN(9); {
	case n < 2 && depth > 0:
		var items []string
		for range k.IntN(4) {
			items = append(items, k.value(depth-1))
		}
		return "[" + strings.Join(items, k.pick(",", " , ")) + "]"
	case n < 4 && depth > 0:
		return k.object(depth)
	default:
		return k.pick(`1`, `-0`, `1.0`, `9007199254740993`, `1e400`, `0.10`, `true`, `null`, `""`, `"<>&"`, `"\u003c\ud83d\ude00"`, `"\ud800"`, `"é\/"`, `"\r\n"`)
	}
}

func (k *talk) object(depth int) string {
	var members []string
	for i := range k.IntN(4) {
		members = append(members, fmt.Sprintf(`"k%d"%s%s`, i, k.pick(":", " : "), k.value(depth-1)))
	}
	return "{" + strings.Join(members, k.pick(",", ",\t")) + "}"
}

func (k *talk) envelope(members ...string) string {
	members = append(members, `"jsonrpc":"2.0"`)
	if k.IntN(4) == 0 {
		members = append(members, `"x-more":`+k.value(2))
	}
	k.Shuffle(len(members), func(i, j int) { members[i], members[j] = members[j], members[i] })
	return "{" + strings.Join(members, k.pick(",", " , ")) + "}"
}

// message makes up one from a side. What it says about its kind is whether it
// may be overtaken.
func (k *talk) message(from Side) (text string, governed bool) {
	switch n := k.IntN(4); {
	case n == 0:
		return k.envelope(`"method":"notifications/`+k.pick("message", "progress", "x")+`"`, `"params":`+k.object(2)), false
	case n == 1 && len(k.open[from]) > 0:
		i := k.IntN(len(k.open[from]))
		id := k.open[from][i]
		k.open[from] = slices.Delete(k.open[from], i, i+1)
		if k.IntN(4) == 0 {
			return k.envelope(`"id":`+id, `"error":`+k.object(2)), false
		}
		// Which method it answers is not known here.
		return k.envelope(`"id":`+id, `"result":`+k.object(3)), true
	default:
		k.ids++
		id := k.pick(fmt.Sprint(k.ids), fmt.Sprintf(`"s%d"`, k.ids), fmt.Sprintf("%d.50", k.ids), fmt.Sprintf("90071992547409%d", 90+k.ids))
		method := k.pick("tools/call", "tools/list", "ping", "resources/read", "sampling/createMessage", "x/y", "initialize", "tasks/list")
		k.open[1-from] = append(k.open[1-from], id)
		members := []string{`"id":` + id, `"method":"` + method + `"`}
		if k.IntN(3) > 0 {
			members = append(members, `"params":`+k.object(3))
		}
		return k.envelope(members...), abi.IsEvent(method)
	}
}

// Whatever two peers say to each other arrives through the relay as it would
// without it, token for token, when a plan governs everything and changes
// nothing; and what no plan governs arrives in order.
func TestThroughARelayAsDirect(t *testing.T) {
	rules := map[string]rule{}
	for _, event := range []string{"tools/call", "tools/list", "resources/read", "sampling/createMessage", "x/y"} {
		rules[event+" request"], rules[event+" response"] = pass, pass
	}
	for seed := range uint64(60) {
		k := &talk{Rand: rand.New(rand.NewPCG(seed, 1))}
		governing := rules
		if seed%3 == 0 {
			governing = nil
		}
		sc := start(t, governing)
		for range 40 {
			side := Side(k.IntN(2))
			from, to := sc.client, sc.backend
			if side == Backend {
				from, to = to, from
			}
			var all, inOrder []string
			for range 1 + k.IntN(8) {
				text, governed := k.message(side)
				all = append(all, text)
				if !governed {
					inOrder = append(inOrder, text)
				}
			}
			for _, m := range all {
				from.send(k.pick("", " ", "\t") + m + k.pick("", " ", "\r"))
			}
			var got, gotInOrder []string
			for range all {
				line := to.next()
				got = append(got, line)
				if slices.Contains(inOrder, line) {
					gotInOrder = append(gotInOrder, line)
				}
			}
			if governing == nil {
				require.Equal(t, all, got, "seed %d", seed)
			} else {
				require.ElementsMatch(t, all, got, "seed %d", seed)
				require.Equal(t, inOrder, gotInOrder, "seed %d", seed)
			}
		}
		require.Empty(t, sc.watcher.causes())
		sc.client.close()
		sc.backend.close()
		sc.ends()
	}
}

// mute is an end whose peer has said everything already.
type mute struct {
	lines   *wire.LineReader
	written []string
}

func (m *mute) Read() ([]byte, error) { return m.lines.Next() }
func (m *mute) Write(b []byte) error {
	m.written = append(m.written, string(wire.Flat(nil, b)))
	return nil
}
func (m *mute) CloseWrite() error { return nil }
func (m *mute) Close() error      { return nil }

// Nothing that either side says makes the relay panic or hang, and no tools/call
// and no sampling reaches anybody past a governor who blocks them.
func FuzzRelay(f *testing.F) {
	for _, seed := range [][2]string{
		{call("1", `{}`) + "\n" + cancelled7, result("1", `{}`) + "\n" + `{"jsonrpc":"2.0","id":1,"method":"sampling/createMessage"}`},
		{`{"jsonrpc":"2.0","id":1,"method":"tasks/get","params":{"taskId":"a"}}`, result("1", `{"result":{},"inputRequests":{"a":`+sample+`}}`)},
		{call("1", `{"inputResponses":{"k":{"role":"x"}}}`), `{"jsonrpc":"2.0","method":"notifications/tasks","params":{"result":{}}}`},
		{"[]\n{}\n{\"id\":1}", "x\n\xff\n{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{}}"},
		{`{"jsonrpc":"2.0","id":1,"method":"ping"}`, `{"jsonrpc":"2.0","id":1,"result":{"inputRequests":{"a":{"method":"sampling/createMessage"}}}}`},
	} {
		f.Add(seed[0], seed[1])
	}
	f.Fuzz(func(t *testing.T, fromClient, fromBackend string) {
		no := block("validation_failed", "g")
		client := &mute{lines: wire.NewLineReader(strings.NewReader(fromClient), 1<<16)}
		backend := &mute{lines: wire.NewLineReader(strings.NewReader(fromBackend), 1<<16)}
		_ = Run(t.Context(), client, backend, Options{Grace: patience, Observer: &watcher{}, Governor: &script{rules: map[string]rule{
			"tools/call request": no, "tools/call response": no, "sampling/createMessage request": no, "sampling/createMessage response": no,
			"elicitation/create response": no, "roots/list response": no,
		}}})
		for _, line := range append(client.written, backend.written...) {
			m, err := wire.Read([]byte(line))
			require.NoError(t, err, line)
			if m.Kind == wire.Request {
				require.NotContains(t, []string{"tools/call", "sampling/createMessage"}, m.Method)
			}
			if m.Kind == wire.Response {
				raw, _ := wire.Get(m.Result, "inputRequests")
				_ = wire.Members(raw, func(_ string, _, v []byte) bool {
					method, _ := wire.Get(v, "method")
					require.NotEqual(t, "sampling/createMessage", text(method), line)
					return true
				})
			}
		}
	})
}
