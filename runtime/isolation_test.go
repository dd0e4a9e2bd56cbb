package runtime_test

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-mcp/weir/abi"
	wt "github.com/weir-mcp/weir/internal/wasmtest"
	"github.com/weir-mcp/weir/runtime"
	"github.com/weir-mcp/weir/runtime/memory"
)

// long has the tests that make many calls make a million instead of twenty
// thousand:
//
//	go test ./runtime -run 'Isolation|Soak' -runtime.long -timeout 2h
var long = flag.Bool("runtime.long", false, "make a million calls where twenty thousand do")

// calls is how many calls a test makes.
func calls(usual, whenLong int) int {
	if *long {
		return whenLong
	}
	return usual
}

// hideout is where a module hides besides memory and globals of numbers.
type hideout string

const (
	nowhereElse  hideout = ""
	inTables     hideout = "tables"
	inSegments   hideout = "segments"   // one bit: whether it has been dropped
	inVectors    hideout = "vectors"    // a global that the host does not read
	inReferences hideout = "references" // likewise
)

var hideouts = []hideout{nowhereElse, inTables, inSegments, inVectors, inReferences}

// What a payload has a hider do besides seeking and hiding: a letter, and behind
// it the 16 bytes that it hides. A hider passes whatever begins otherwise.
const (
	echoes     = 'E' // answers with the secret
	scans      = 'S' // the same, and looks at all of its memory for another one
	returns    = 'x' // fails in one of these ways
	traps      = 'y'
	exits      = 'q'
	runsOut    = 'z'
	hiderFuel  = 2_000_000
	secretSize = 16
)

// spot is where a secret can be, with code that tells whether there is one, and
// code that leaves the caller's there (none where a call leaves it anyway).
type spot struct {
	name      string
	look, put []byte
	grown     bool // in pages that a call has grown
}

// Instructions that hiders need beyond the usual.
var (
	i64IsNot0                             = wt.Seq(wt.I64(0), wt.I64Ne)
	wrapI64                               = []byte{0xa7}
	i32FromF32, i64FromF64                = []byte{0xbc}, []byte{0xbd}
	f32FromI32, f64FromI64                = []byte{0xbe}, []byte{0xbf}
	vectorIsNot0, vectorOfI64, vector0    = []byte{0xfd, 0x53}, []byte{0xfd, 0x12}, append([]byte{0xfd, 12}, make([]byte, 16)...)
	typeI64, typeF32, typeF64, typeVector = byte(0x7e), byte(0x7d), byte(0x7c), byte(0x7b)
	typeFuncref                           = byte(0x70)
	zeroF32, zeroF64                      = []byte{0x43, 0, 0, 0, 0}, []byte{0x44, 0, 0, 0, 0, 0, 0, 0, 0}
)

// The memory of a hider, its locals (the two halves of a secret), and where its
// answer is.
const (
	hiderPages, hiderGrows = 4, 3
	hiderEnd, hiderGrown   = hiderPages * 64 << 10, (hiderPages + hiderGrows) * 64 << 10
	firstHalf, secondHalf  = 1, 2
	answerAt               = 7000
	answerBefore           = `{"result":{"valid":true,"info":{"secret":"`
	answerEmpty            = "................"
	answerAfter            = `"}}}`
	secretAt               = uint32(answerAt + len(answerBefore))
)

// spots are all of a hider's, the last of which are those of the hideout. The
// function is one that the module has.
func (also hideout) spots(r *wt.Reactor, function wt.Func) (list []spot) {
	add := func(name string, look, put []byte) { list = append(list, spot{name: name, look: look, put: put}) }

	number := r.Global(0)
	add("i32", wt.GlobalGet(number), wt.Seq(wt.Get(firstHalf), wrapI64, wt.GlobalSet(number)))
	wide := r.GlobalAs(typeI64, wt.I64(0))
	add("i64", wt.Seq(wt.GlobalGet(wide), i64IsNot0), wt.Seq(wt.Get(secondHalf), wt.GlobalSet(wide)))
	single := r.GlobalAs(typeF32, zeroF32)
	add("f32", wt.Seq(wt.GlobalGet(single), i32FromF32), wt.Seq(wt.Get(secondHalf), wrapI64, f32FromI32, wt.GlobalSet(single)))
	double := r.GlobalAs(typeF64, zeroF64)
	add("f64", wt.Seq(wt.GlobalGet(double), i64FromF64, i64IsNot0), wt.Seq(wt.Get(firstHalf), f64FromI64, wt.GlobalSet(double)))

	for _, at := range []int32{
		0, 8188, 12_284, 40_000, 2*64<<10 - 4, 3 * 64 << 10, hiderEnd - 8,
		hiderEnd, hiderEnd + 100_000, hiderGrown - 8,
	} {
		list = append(list, spot{
			fmt.Sprint("memory at ", at), wt.Seq(wt.I32(at), wt.Load64(0), i64IsNot0),
			wt.Seq(wt.I32(at), wt.Get(firstHalf), wt.Store64(0)), at >= hiderEnd,
		})
	}
	add("growth", wt.Seq(wt.MemorySize, wt.I32(hiderPages), wt.I32Ne), nil)
	add("the input", wt.Seq(wt.I32(0), wt.Load64(switchAt+1), i64IsNot0), nil)
	for half, at := range []uint32{secretAt, secretAt + 8} {
		add(fmt.Sprint("the answer ", half), wt.Seq(wt.I32(0), wt.Load64(at), wt.I64(0x2e2e2e2e2e2e2e2e), wt.I64Ne), nil)
	}

	switch also {
	case inTables:
		r.Table(1, 4)
		r.Elements(0)                            // names nothing, but is there
		r.ExportAs("named", 0, uint32(function)) // ref.func needs a function that is named outside of code
		add("table size", wt.Seq(wt.TableSize0, wt.I32(1), wt.I32Ne), wt.Seq(wt.RefNullFunc, wt.I32(1), wt.TableGrow0, wt.Drop))
		add("table", wt.Seq(wt.I32(0), wt.TableGet0, wt.RefIsNull, wt.I32Eqz), wt.Seq(wt.I32(0), wt.RefFunc(function), wt.TableSet0))
	case inSegments:
		r.Table(1)
		elements, data := byte(r.PassiveElements(function)), byte(r.PassiveData([]byte{0}))
		// What is dropped has length 0, so that to use it traps.
		add("data segment", wt.Seq(wt.I32(6000), wt.I32(0), wt.I32(1), []byte{0xfc, 8, data, 0}, wt.I32(0)), []byte{0xfc, 9, data})
		add("element segment", wt.Seq(wt.I32(0), wt.I32(0), wt.I32(1), []byte{0xfc, 12, elements, 0}, wt.I32(0)), []byte{0xfc, 13, elements})
	case inVectors:
		vector := r.GlobalAs(typeVector, vector0)
		add("v128", wt.Seq(wt.GlobalGet(vector), vectorIsNot0), wt.Seq(wt.Get(firstHalf), vectorOfI64, wt.GlobalSet(vector)))
	case inReferences:
		reference := r.GlobalAs(typeFuncref, wt.RefNullFunc)
		r.ExportAs("named", 0, uint32(function))
		add("reference", wt.Seq(wt.GlobalGet(reference), wt.RefIsNull, wt.I32Eqz), wt.Seq(wt.RefFunc(function), wt.GlobalSet(reference)))
	}
	return list
}

// hider is a module that hides a secret of its caller wherever it can, and traps
// when it finds what another has hidden: in its memory, where its input and its
// answer go, in pages that it grows, in globals, and in the hideout. Its warm-up
// hides nothing, for it does nothing.
func hider(also hideout) []byte {
	wasm, _ := hiderIn(also, "")
	return wasm
}

// hiderIn is one that uses the spot of that name only, if it is not empty. It
// returns the names of all.
func hiderIn(also hideout, only string) (wasm []byte, names []string) {
	r := wt.NewReactorWith(func(m *wt.Module) { m.Import("wasi_snapshot_preview1", "proc_exit", "i:") }, wt.Validator("guard"))
	const exit = wt.Func(3)
	r.Memory(hiderPages)
	r.Data(answerAt, []byte(answerBefore+answerEmpty+answerAfter))

	finds := func(look []byte) []byte { return wt.Seq(look, wt.If(wt.Unreachable)) }
	var seek, seekGrown, hide [][]byte
	for _, s := range also.spots(r, exit) {
		names = append(names, s.name)
		if only != "" && only != s.name {
			continue
		}
		if s.grown {
			seekGrown = append(seekGrown, finds(s.look))
		} else {
			seek = append(seek, finds(s.look))
		}
		hide = append(hide, s.put)
	}
	grow := wt.Seq(wt.I32(hiderGrows), wt.MemoryGrow)
	if only == "" {
		grow = finds(wt.Seq(grow, wt.I32(hiderPages), wt.I32Ne))
	} else {
		grow = wt.Seq(grow, wt.Drop)
	}
	// The whole of memory but what the module begins with and its input.
	const at, end = 0, 1
	scanned := r.Func("ii:", "", wt.Loop(
		finds(wt.Seq(wt.Get(at), wt.Load64(0), i64IsNot0)),
		wt.Get(at), wt.I32(8), wt.I32Add, wt.Set(at), wt.Get(at), wt.Get(end), wt.I32Ne, wt.BrIf(0)))
	scan := func(from, to int32) []byte { return wt.Seq(wt.I32(from), wt.I32(to), wt.Call(scanned)) }
	echo := wt.Seq(
		wt.I32(0), wt.Get(firstHalf), wt.Store64(secretAt), wt.I32(0), wt.Get(secondHalf), wt.Store64(secretAt+8),
		wt.I32(answerAt), wt.I32(int32(len(answerBefore+answerEmpty+answerAfter))), wt.Call(r.Output), wt.I32(0), wt.Return)

	r.Export(abi.ExportWarmup, r.Func(":i", "", wt.I32(0)))
	r.Invoke("II",
		wt.Seq(seek...), grow, wt.Seq(seekGrown...),
		takeInput(r),
		wt.I32(0), wt.Load64(switchAt+1), wt.Set(firstHalf), wt.I32(0), wt.Load64(switchAt+9), wt.Set(secondHalf),
		when(scans, scan(8192, wt.InputAt), scan(wt.InputAt+4096, hiderGrown)),
		wt.Seq(hide...),
		when(echoes, echo), when(scans, echo),
		when(returns, wt.I32(7), wt.Return), when(traps, wt.Unreachable), when(exits, wt.I32(0), wt.Call(exit)), when(runsOut, endless),
		r.Answer(`{"result":{"valid":true}}`))
	return r.Bytes(), names
}

// secretive is the payload of one call of a hider, which hides what no other
// call does, with the way in which the call ends.
func secretive(caller, call int) (payload string, secret string, reason abi.Reason) {
	letter := echoes
	switch call % 16 {
	case 3:
		letter, reason = returns, abi.ReasonGuest
	case 7:
		letter, reason = traps, abi.ReasonTrap
	case 11:
		letter, reason = exits, abi.ReasonExit
	case 15:
		letter, reason = runsOut, abi.ReasonFuel
	case 4, 12:
		letter = scans
	}
	secret = fmt.Sprintf("%c%015d", 'a'+caller, call+1)
	return `"` + string(letter) + secret + `"`, secret, reason
}

// By whom and in which session call number n is made.
func principalOf(caller, n int) *abi.Context {
	return &abi.Context{
		Principal: &abi.Principal{Type: abi.PrincipalService, ID: fmt.Sprintf("tenant-%d-%d", caller, n%5)},
		SessionID: fmt.Sprintf("session-%d", n%7),
	}
}

// requireIsolation makes n calls of a hider from each of four callers, and has
// its state captured again meanwhile.
func requireIsolation(t *testing.T, m *runtime.Module, n int) {
	t.Helper()
	var wg sync.WaitGroup
	for caller := range 4 {
		wg.Go(func() {
			for i := range n {
				if caller == 0 && i%(1+n/8) == n/16 {
					runtime.Renew(m)
				}
				payload, secret, reason := secretive(caller, i+caller)
				inv := call(payload)
				inv.Context = principalOf(caller, i)
				result, err := m.Invoke(context.Background(), inv)
				switch e := abi.AsError(err, "", ""); {
				case e != nil && e.Reason != reason:
					t.Errorf("caller %d, call %d: %v: %v", caller, i, err, e.Cause)
					return
				case e == nil && (reason != "" || string(result.Info) != `{"secret":"`+secret+`"}`):
					t.Errorf("caller %d, call %d: got %s instead of %s %s", caller, i, result.Info, secret, reason)
					return
				}
			}
		})
	}
	wg.Wait()
}

// secret_left_behind: nothing that a call leaves is found by another, whichever
// way instances are put back, whoever calls at the same time, and whether calls
// succeed or fail.
func TestIsolation(t *testing.T) {
	fuel := limited(func(l *runtime.Limits) { l.Fuel, l.Queue = hiderFuel, 100 })
	for name, o := range ways() {
		for _, also := range hideouts {
			captured := o.reset != memory.Fresh && also == nowhereElse
			n := calls(25, 250)
			switch slow := o.engine != *engineFlag; {
			case slow && o.reset != memory.Fresh && also != nowhereElse:
				continue // fresh, too
			case slow && raced:
				n = calls(4, 250)
			case slow:
				n = calls(20, 2500)
			case captured: // 20,000 calls in all, or a million
				n = calls(2500, 125_000)
			case also == nowhereElse: // of 1,000 on fresh instances
				n = calls(150, 2500)
			}
			t.Run(strings.TrimSuffix(name+", hiding in "+string(also), ", hiding in "), func(t *testing.T) {
				noLeaks(t)
				m := settled(t, load(t, newRuntime(t, o), hider(also), fuel))
				if captured {
					require.Equal(t, o.reset.String(), m.Reset())
				} else {
					require.Contains(t, m.Reset(), memory.Fresh.String())
				}
				requireIsolation(t, m, n)
			})
		}
	}
}

// The hiders themselves would see what is left: in an instance that is neither
// put back nor replaced each finds what a call before has hidden, in each spot.
func TestHidersFindWhatIsLeft(t *testing.T) {
	payload, secret, _ := secretive(0, 0)
	for _, also := range hideouts {
		_, names := hiderIn(also, "")
		require.Greater(t, len(names), 15)
		for _, name := range names {
			t.Run(name, func(t *testing.T) {
				r := runtime.New(leavingEngine{newEngine(t, on{reset: memory.Fresh})}, runtime.WithLogger(slog.New(slog.DiscardHandler)))
				wasm, _ := hiderIn(also, name)
				m := settled(t, load(t, r, wasm))
				result, err := invoke(m, payload)
				require.NoError(t, err)
				require.JSONEq(t, `{"secret":"`+secret+`"}`, string(result.Info))
				_, err = invoke(m, payload)
				requireReason(t, abi.ReasonTrap, err)
				require.NoError(t, r.Close(context.Background()))
			})
		}
	}
}

// leavingEngine has one instance of each module, for all calls.
type leavingEngine struct{ runtime.Engine }

func (e leavingEngine) Compile(ctx context.Context, wasm []byte) (runtime.Code, error) {
	code, err := e.Engine.Compile(ctx, wasm)
	return &leavingCode{Code: code}, err
}

type leavingCode struct {
	runtime.Code
	only runtime.Instance
}

func (c *leavingCode) Instantiate(ctx context.Context, room runtime.Room) (runtime.Instance, error) {
	if c.only != nil {
		return leavingInstance{c.only}, nil
	}
	instance, err := c.Code.Instantiate(ctx, room)
	c.only = instance
	return leavingInstance{instance}, err
}

func (c *leavingCode) Close(ctx context.Context) error {
	return errors.Join(c.only.Close(ctx), c.Code.Close(ctx))
}

type leavingInstance struct{ runtime.Instance }

func (leavingInstance) Close(context.Context) error { return nil }

// The same of a Go guest, whose secrets are in variables, maps, pools, its
// environment, timers, and with goroutines that it leaves behind, some of which
// go on working as soon as they can.
func TestIsolationOfAGoGuest(t *testing.T) {
	for _, way := range []memory.Way{memory.Auto, memory.FullCopy, memory.Fresh} {
		t.Run(way.String(), func(t *testing.T) {
			m := settled(t, loadGo(t, newRuntime(t, on{cacheDir: goCache, reset: way}), limited(func(l *runtime.Limits) { l.Queue = 100 })))
			result, err := invoke(m, tool("hide and seek"))
			require.NoError(t, err)
			require.JSONEq(t, `{"found":"variable: s, late: s, map: s, pool: s, heap: ssssssssss, environment: s, channel: s, goroutines: 2"}`,
				string(result.Info), "it would see what is left")
			n := calls(100, 25_000)
			if way == memory.Fresh {
				n = calls(10, 1000)
			}
			var wg sync.WaitGroup
			for caller := range 4 {
				wg.Go(func() {
					for i := range n {
						if caller == 0 && i == n/2 {
							runtime.Renew(m)
						}
						secret := fmt.Sprintf("secret %d of %d", i, caller)
						inv := call(fmt.Sprintf(`{"name":"hide","arguments":{"text":%q}}`, secret))
						inv.Context = principalOf(caller, i)
						result, err := m.Invoke(context.Background(), inv)
						if err != nil {
							t.Errorf("caller %d, call %d: %v", caller, i, err)
							return
						}
						var said struct{ Secret, Found string }
						if err := json.Unmarshal(result.Info, &said); err != nil || !result.Valid || said.Secret != secret || said.Found != "" {
							t.Errorf("caller %d, call %d: %s (%v)", caller, i, result.Info, err)
							return
						}
					}
				})
			}
			wg.Wait()
		})
	}
}
