package runtime_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-mcp/weir/abi"
	wt "github.com/weir-mcp/weir/internal/wasmtest"
	"github.com/weir-mcp/weir/runtime"
	"github.com/weir-mcp/weir/runtime/store"
	"github.com/weir-mcp/weir/runtime/wazero"
)

// kvImports are the functions of the grant kv in a module.
type kvImports struct{ get, set, add, delete wt.Func }

func (k *kvImports) imports(m *wt.Module) {
	k.get = m.Import("weir", "kv_get", "iiii:i")
	k.set = m.Import("weir", "kv_set", "iiiiI:i")
	k.add = m.Import("weir", "kv_add", "iiIIi:i")
	k.delete = m.Import("weir", "kv_delete", "ii:i")
}

// kvModule is a module that runs the steps in every call, describe if told so,
// and traps where one of them does not give what it should.
func kvModule(inDescribe bool, steps func(r *wt.Reactor, k *kvImports) []byte) []byte {
	k := &kvImports{}
	r := wt.NewReactorWith(k.imports, wt.Validator("guard"))
	body := steps(r, k)
	if inDescribe {
		r.Export(abi.ExportInitialize, r.Func("", "", body))
		body = nil
	}
	r.Invoke("", body, r.Answer(`{"result":{"valid":true}}`))
	return r.Bytes()
}

// gives traps unless the instructions push the i32.
func gives(want int32, code ...[]byte) []byte {
	return wt.Seq(wt.Seq(code...), wt.I32(want), wt.I32Ne, wt.If(wt.Unreachable))
}

func withKV(kv *runtime.KV) func(*runtime.ModuleOptions) {
	return func(o *runtime.ModuleOptions) { o.Grants.KV = kv }
}

func memoryKV(scope store.Scope) *runtime.KV {
	return &runtime.KV{Store: store.NewMemory(store.Limits{}), Host: "local", Scope: scope}
}

const (
	out  = 0x8000 // free memory for results
	page = 64 << 10
)

// Every return code of abi.md's table.
func TestKVCodes(t *testing.T) {
	noTTL, forSome := wt.I64(0), wt.I64(60_000)
	for name, steps := range map[string]func(r *wt.Reactor, k *kvImports) []byte{
		"get what is absent": func(r *wt.Reactor, k *kvImports) []byte {
			return gives(-1, r.Text("k"), wt.I32(out), wt.I32(100), wt.Call(k.get))
		},
		"set and get": func(r *wt.Reactor, k *kvImports) []byte {
			return wt.Seq(
				gives(0, r.Text("k"), r.Text("value"), forSome, wt.Call(k.set)),
				gives(5, r.Text("k"), wt.I32(out), wt.I32(5), wt.Call(k.get)),
				gives('v', wt.I32(out), wt.Load8(0)), gives('e', wt.I32(out), wt.Load8(4)), gives(0, wt.I32(out), wt.Load8(5)))
		},
		"a value larger than its room is not written": func(r *wt.Reactor, k *kvImports) []byte {
			return wt.Seq(
				gives(0, r.Text("k"), r.Text("value"), noTTL, wt.Call(k.set)),
				gives(5, r.Text("k"), wt.I32(out), wt.I32(4), wt.Call(k.get)), gives(0, wt.I32(out), wt.Load(0)),
				gives(5, r.Text("k"), wt.I32(0), wt.I32(0), wt.Call(k.get)))
		},
		"an empty key and an empty value": func(r *wt.Reactor, k *kvImports) []byte {
			return wt.Seq(
				gives(0, wt.I32(0), wt.I32(0), wt.I32(0), wt.I32(0), noTTL, wt.Call(k.set)),
				gives(0, wt.I32(0), wt.I32(0), wt.I32(0), wt.I32(0), wt.Call(k.get)))
		},
		"delete": func(r *wt.Reactor, k *kvImports) []byte {
			return wt.Seq(
				gives(-1, r.Text("k"), wt.Call(k.delete)),
				gives(0, r.Text("k"), r.Text("v"), noTTL, wt.Call(k.set)),
				gives(0, r.Text("k"), wt.Call(k.delete)),
				gives(-1, r.Text("k"), wt.I32(out), wt.I32(1), wt.Call(k.get)))
		},
		"add": func(r *wt.Reactor, k *kvImports) []byte {
			return wt.Seq(
				gives(0, r.Text("n"), wt.I64(1<<40), forSome, wt.I32(out), wt.Call(k.add)), gives(256, wt.I32(out), wt.Load(4)),
				gives(0, r.Text("n"), wt.I64(-1<<40-3), noTTL, wt.I32(out), wt.Call(k.add)), gives(-3, wt.I32(out), wt.Load(0)), gives(-1, wt.I32(out), wt.Load(4)),
				gives(2, r.Text("n"), wt.I32(out), wt.I32(9), wt.Call(k.get)), gives('-', wt.I32(out), wt.Load8(0)), gives('3', wt.I32(out), wt.Load8(1)))
		},
		"add to what is no number": func(r *wt.Reactor, k *kvImports) []byte {
			return wt.Seq(
				gives(0, r.Text("n"), r.Text("many"), noTTL, wt.Call(k.set)),
				gives(-4, r.Text("n"), wt.I64(1), noTTL, wt.I32(out), wt.Call(k.add)), gives(0, wt.I32(out), wt.Load(0)))
		},
		"a sum past 64 bits": func(r *wt.Reactor, k *kvImports) []byte {
			return wt.Seq(
				gives(0, r.Text("n"), r.Text("9223372036854775807"), noTTL, wt.Call(k.set)),
				gives(-3, r.Text("n"), wt.I64(1), noTTL, wt.I32(out), wt.Call(k.add)), gives(0, wt.I32(out), wt.Load(0)))
		},
		"a key of 256 bytes": func(r *wt.Reactor, k *kvImports) []byte {
			return gives(0, wt.I32(0), wt.I32(256), r.Text("v"), noTTL, wt.Call(k.set))
		},
		"a key of 257 bytes": func(r *wt.Reactor, k *kvImports) []byte {
			key := wt.Seq(wt.I32(0), wt.I32(257))
			return wt.Seq(
				gives(-3, key, r.Text("v"), noTTL, wt.Call(k.set)), gives(-3, key, wt.I32(out), wt.I32(1), wt.Call(k.get)),
				gives(-3, key, wt.I64(1), noTTL, wt.I32(out), wt.Call(k.add)), gives(-3, key, wt.Call(k.delete)),
				gives(-3, wt.I32(-1), wt.I32(-1), wt.Call(k.delete))) // a size is known before an address
		},
		"a value of 64 KiB": func(r *wt.Reactor, k *kvImports) []byte {
			return wt.Seq(
				gives(0, r.Text("k"), wt.I32(0), wt.I32(page), noTTL, wt.Call(k.set)),
				gives(page, r.Text("k"), wt.I32(page), wt.I32(page), wt.Call(k.get)))
		},
		"a value of 64 KiB and a byte": func(r *wt.Reactor, k *kvImports) []byte {
			return gives(-3, r.Text("k"), wt.I32(0), wt.I32(page+1), noTTL, wt.Call(k.set))
		},
		"a TTL below 0": func(r *wt.Reactor, k *kvImports) []byte {
			return wt.Seq(
				gives(-4, r.Text("k"), r.Text("v"), wt.I64(-1), wt.Call(k.set)),
				gives(-4, r.Text("k"), wt.I64(1), wt.I64(-1<<63), wt.I32(out), wt.Call(k.add)),
				gives(-1, r.Text("k"), wt.Call(k.delete)))
		},
		"a TTL of ages": func(r *wt.Reactor, k *kvImports) []byte {
			return wt.Seq(
				gives(0, r.Text("k"), r.Text("v"), wt.I64(1<<63-1), wt.Call(k.set)),
				gives(1, r.Text("k"), wt.I32(out), wt.I32(1), wt.Call(k.get)))
		},
	} {
		t.Run(name, func(t *testing.T) {
			onEveryEngine(t, func(t *testing.T, r *runtime.Runtime) {
				m := load(t, r, kvModule(false, steps), withKV(memoryKV(store.Module)))
				requireWorks(t, m, `{}`)
			})
		})
	}
}

// An address outside memory ends the call, as it does everywhere in the ABI, and
// changes nothing.
func TestKVAddresses(t *testing.T) {
	end := wt.I32(4 * page)
	for name, steps := range map[string]func(r *wt.Reactor, k *kvImports) []byte{
		"key": func(r *wt.Reactor, k *kvImports) []byte { return wt.Seq(end, wt.I32(1), wt.Call(k.delete), wt.Drop) },
		"room": func(r *wt.Reactor, k *kvImports) []byte {
			return wt.Seq(r.Text("k"), end, wt.I32(1), wt.Call(k.get), wt.Drop)
		},
		"value": func(r *wt.Reactor, k *kvImports) []byte {
			return wt.Seq(r.Text("k"), end, wt.I32(1), wt.I64(0), wt.Call(k.set), wt.Drop)
		},
		"sum": func(r *wt.Reactor, k *kvImports) []byte {
			return wt.Seq(r.Text("k"), wt.I64(1), wt.I64(0), wt.I32(4*page-7), wt.Call(k.add), wt.Drop)
		},
		"a wrapped one": func(r *wt.Reactor, k *kvImports) []byte {
			return wt.Seq(wt.I32(-1), wt.I32(2), wt.Call(k.delete), wt.Drop)
		},
	} {
		t.Run(name, func(t *testing.T) {
			kv := memoryKV(store.Module)
			m := load(t, newRuntime(t, wazero.Options{}), kvModule(false, steps), withKV(kv))
			_, err := invoke(m, `{}`)
			require.ErrorContains(t, requireReason(t, abi.ReasonTrap, err), "not all inside memory")
			_, ok, err := kv.Store.Get(t.Context(), store.Space{Host: "local", File: "guest.wasm", Scope: store.Module}, "k")
			require.NoError(t, err)
			require.False(t, ok)
		})
	}
}

// counting is a module whose call adds 1 to a counter and says the sum as a
// digit: valid up to 9.
func counting() []byte {
	return kvModule(false, func(r *wt.Reactor, k *kvImports) []byte {
		return wt.Seq(
			r.Text("n"), wt.I64(1), wt.I64(60_000), wt.I32(out), wt.Call(k.add), wt.If(wt.I32(1), wt.Return),
			wt.I32(out), wt.I32('0'), wt.I32(out), wt.Load8(0), wt.I32Add, wt.Store8(0),
			wt.I32(1), wt.I32(out), wt.I32(1), wt.Call(r.Log))
	})
}

// counted calls the module for a caller and returns what it logged: the sum, or
// "none" when the store was unavailable.
func counted(t *testing.T, m *runtime.Module, log *logBuffer, inv abi.Invocation) string {
	t.Helper()
	log.mu.Lock()
	log.b.Reset()
	log.mu.Unlock()
	inv.Name, inv.Event, inv.Phase, inv.Payload = "guard", abi.ToolsCall, abi.Request, json.RawMessage(`{}`)
	if _, err := m.Invoke(context.Background(), inv); err != nil {
		var e *abi.Error
		require.ErrorAs(t, err, &e)
		require.Equal(t, abi.ReasonGuest, e.Reason)
		return "none"
	}
	for _, record := range log.records(t) {
		if record["interceptor"] == "guard" {
			return record["msg"].(string)
		}
	}
	t.Fatal("nothing was counted")
	return ""
}

func principal(typ, id, session string) abi.Invocation {
	return abi.Invocation{Context: &abi.Context{Principal: &abi.Principal{Type: typ, ID: id}, SessionID: session}}
}

// Whose values a call sees (abi.md, grant kv). Each row is a caller, and what its
// call counts to after those above it.
func TestKVScopes(t *testing.T) {
	long := strings.Repeat("x", 1<<20)
	callers := []struct {
		name string
		inv  abi.Invocation
		want map[store.Scope]string
	}{
		{"nobody", abi.Invocation{}, map[store.Scope]string{store.Principal: "none", store.Session: "none", store.Module: "1"}},
		{"a context that names nobody", abi.Invocation{Context: &abi.Context{}}, map[store.Scope]string{store.Principal: "none", store.Session: "none", store.Module: "2"}},
		{"anonymous without a session", principal("anonymous", "x", ""), map[store.Scope]string{store.Principal: "none", store.Session: "none", store.Module: "3"}},
		{"a principal without a session", principal("user", "ann", ""), map[store.Scope]string{store.Principal: "1", store.Session: "none", store.Module: "4"}},
		{"the same in a session", principal("user", "ann", "s1"), map[store.Scope]string{store.Principal: "2", store.Session: "1", store.Module: "5"}},
		{"a service of that name", principal("service", "ann", "s1"), map[store.Scope]string{store.Principal: "1", store.Session: "2", store.Module: "6"}},
		{"anonymous in that session", principal("anonymous", "", "s1"), map[store.Scope]string{store.Principal: "1", store.Session: "3", store.Module: "7"}},
		{"a principal without an id is none", principal("user", "", "s1"), map[store.Scope]string{store.Principal: "2", store.Session: "4", store.Module: "8"}},
		{"a connection", abi.Invocation{Connection: "s1"}, map[store.Scope]string{store.Principal: "1", store.Session: "1", store.Module: "9"}},
		{"a connection with a session", abi.Invocation{Connection: "c", Context: &abi.Context{SessionID: "s1"}}, map[store.Scope]string{store.Principal: "3", store.Session: "5"}},
		{"a long name", principal("user", long, long), map[store.Scope]string{store.Principal: "1", store.Session: "1"}},
		{"another long name", principal("user", long+"y", long+"y"), map[store.Scope]string{store.Principal: "1", store.Session: "1"}},
		{"the long name again", principal("user", long, long), map[store.Scope]string{store.Principal: "2", store.Session: "2"}},
	}
	r := newRuntime(t, wazero.Options{})
	for _, scope := range []store.Scope{store.Principal, store.Session, store.Module, ""} {
		t.Run("scope "+string(scope), func(t *testing.T) {
			log := &logBuffer{}
			m := load(t, r, counting(), withKV(memoryKV(scope)), logged(log))
			for _, c := range callers {
				if want, ok := c.want[scope]; ok {
					require.Equal(t, want, counted(t, m, log, c.inv), c.name)
				} else if want := c.want[store.Principal]; scope == "" {
					require.Equal(t, want, counted(t, m, log, c.inv), "the default is principal: %s", c.name)
				}
			}
		})
	}
}

// Values belong to a host and a file: they survive a new version of the file and
// are not those of another.
func TestKVOutlivesTheModule(t *testing.T) {
	r, kv, log := newRuntime(t, wazero.Options{}), memoryKV(store.Principal), &logBuffer{}
	ann := principal("user", "ann", "")
	named := func(host, name string) func(o *runtime.ModuleOptions) {
		return func(o *runtime.ModuleOptions) {
			o.Name = name
			o.Grants.KV = &runtime.KV{Store: kv.Store, Host: host, Scope: kv.Scope}
		}
	}
	first := load(t, r, counting(), named("local", "a.wasm"), logged(log))
	require.Equal(t, "1", counted(t, first, log, ann))
	require.NoError(t, first.Close(t.Context()))
	newer := wt.Seq(counting(), []byte("\x00\x06\x05newer")) // another file, by a custom section
	second := load(t, r, newer, named("local", "a.wasm"), logged(log))
	require.NotEqual(t, first.Digest(), second.Digest())
	require.Equal(t, "2", counted(t, second, log, ann))
	require.Equal(t, "1", counted(t, load(t, r, counting(), named("local", "b.wasm"), logged(log)), log, ann), "another file")
	require.Equal(t, "1", counted(t, load(t, r, counting(), named("team", "a.wasm"), logged(log)), log, ann), "another host")
}

// Before the first call there is nobody to keep values for.
func TestKVIsUnavailableWhileLoading(t *testing.T) {
	kv := memoryKV(store.Module)
	wasm := kvModule(true, func(r *wt.Reactor, k *kvImports) []byte {
		return wt.Seq(
			gives(-2, r.Text("k"), r.Text("v"), wt.I64(0), wt.Call(k.set)), gives(-2, r.Text("k"), wt.I32(out), wt.I32(1), wt.Call(k.get)),
			gives(-2, r.Text("k"), wt.I64(1), wt.I64(0), wt.I32(out), wt.Call(k.add)), gives(-2, r.Text("k"), wt.Call(k.delete)),
			gives(-2, wt.I32(-1), wt.I32(-1), wt.Call(k.delete))) // nothing is looked at
	})
	load(t, newRuntime(t, wazero.Options{}), wasm, withKV(kv))
	load(t, newRuntime(t, wazero.Options{}), wasm, withKV(&runtime.KV{}))
}

func TestKVGrant(t *testing.T) {
	r := newRuntime(t, wazero.Options{})
	_, err := tryLoad(r, counting())
	require.ErrorContains(t, err, "weir.kv_add needs the grant kv, which the line files: {guest.wasm: {grants: {kv: {scope: principal}}}} of its host")
	_, err = tryLoad(r, counting(), withKV(&runtime.KV{Scope: "everyone"}))
	require.ErrorContains(t, err, `there is no scope "everyone"`)
	_, err = tryLoad(r, withImports(func(m *wt.Module) { m.Import("weir", "kv_get", "iii:i") }), withKV(&runtime.KV{}))
	require.ErrorContains(t, err, "weir.kv_get has the type")

	facts, err := runtime.Inspect(counting())
	require.NoError(t, err)
	require.NoError(t, facts.Refused, "what can be granted is no reason to refuse")
	granted := map[string]string{}
	for _, i := range facts.Imports {
		granted[i.Name] = i.Grant
		require.Empty(t, i.Problem)
	}
	require.Equal(t, map[string]string{"input": "", "output": "", "log": "", "kv_get": "kv", "kv_set": "kv", "kv_add": "kv", "kv_delete": "kv"}, granted)
}

// failing is a store that cannot be reached.
type failing struct{ store.Store }

func (failing) Add(context.Context, store.Space, string, int64, time.Duration) (int64, error) {
	return 0, errors.New("no route to the store")
}

func TestKVFailuresAreToldToTheOperator(t *testing.T) {
	twice := kvModule(false, func(r *wt.Reactor, k *kvImports) []byte {
		add := gives(-2, r.Text("n"), wt.I64(1), wt.I64(0), wt.I32(out), wt.Call(k.add))
		return wt.Seq(add, add)
	})
	for name, c := range map[string]struct {
		store store.Store
		says  string
	}{
		"full":        {store.NewMemory(store.Limits{Total: store.Limit{Bytes: 1}}), "the store is full"},
		"unreachable": {failing{}, "no route to the store"},
	} {
		t.Run(name, func(t *testing.T) {
			log := &logBuffer{}
			m := load(t, newRuntime(t, wazero.Options{}), twice, withKV(&runtime.KV{Store: c.store, Scope: store.Module}), logged(log))
			requireWorks(t, m, `{}`)
			var told []map[string]any
			for _, record := range log.records(t) {
				if record["level"] == "WARN" {
					told = append(told, record)
				}
			}
			require.Len(t, told, 1, "once a call")
			require.Equal(t, "guest.wasm", told[0]["module"])
			require.Contains(t, told[0]["cause"], c.says)
		})
	}
}

// Concurrent calls, of two versions of a file, count each once.
func TestKVHammer(t *testing.T) {
	r, kv := newRuntime(t, wazero.Options{}), memoryKV(store.Principal)
	modules := []*runtime.Module{load(t, r, counting(), withKV(kv)), load(t, r, counting(), withKV(kv))}
	const workers, each = 4, 25
	var all sync.WaitGroup
	for w := range workers {
		all.Go(func() {
			inv := principal("user", "ann", "")
			inv.Name, inv.Event, inv.Phase, inv.Payload = "guard", abi.ToolsCall, abi.Request, json.RawMessage(`{}`)
			for range each {
				if _, err := modules[w%2].Invoke(context.Background(), inv); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	text, _, err := kv.Store.Get(t.Context(), store.Space{Host: "local", File: "guest.wasm", Scope: store.Principal, Owner: "user:ann"}, "n")
	require.NoError(t, err)
	require.Equal(t, "100", string(text))
}
