package runtime

import (
	"context"
	"testing"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"github.com/weir-mcp/weir/abi"
	"github.com/weir-mcp/weir/internal/wire"
	"github.com/weir-mcp/weir/runtime/meter"
)

// Drain closes the instances of a module that wait for a call.
func Drain(m *Module) { m.guests.drain() }

// Unsafe runs a module in one instance of plain wazero that is reused as it was
// left: no metering, no deadline, no reset, no slots. It reads the answers as
// the runtime does, so that the difference is what the sandbox costs.
func Unsafe(tb testing.TB, ctx context.Context, r wazero.Runtime, binary []byte) func(abi.Invocation) {
	check := func(err error) {
		if err != nil {
			tb.Fatal(err)
		}
	}
	builders := map[string]wazero.HostModuleBuilder{}
	for _, f := range guestFuncs() {
		if builders[f.Module] == nil {
			builders[f.Module] = r.NewHostModuleBuilder(f.Module)
		}
		types := func(list []meter.ValueType) (to []api.ValueType) {
			for _, t := range list {
				to = append(to, api.ValueType(t))
			}
			return to
		}
		builders[f.Module].NewFunctionBuilder().WithGoModuleFunction(api.GoModuleFunc(func(ctx context.Context, m api.Module, words []uint64) {
			for i, p := range f.Type.Params {
				if p == meter.I32 {
					words[i] = uint64(uint32(words[i]))
				}
			}
			if err := f.Call(ctx, m.Memory(), words); err != nil {
				panic(err)
			}
		}), types(f.Type.Params), types(f.Type.Results)).Export(f.Name)
	}
	for _, b := range builders {
		_, err := b.Instantiate(ctx)
		check(err)
	}
	limits, err := Limits{}.orDefaults()
	check(err)
	m := &Module{limits: limits, flavour: Reactor}
	newCall := func(input []byte) *call {
		c := m.newRehearsal(input)
		c.tank.gauge = new(fakeGlobal)
		return c
	}
	instance, err := r.InstantiateWithConfig(newCall(nil).context(ctx), binary, wazero.NewModuleConfig().WithStartFunctions("_initialize"))
	check(err)
	c := newCall(nil)
	_, err = instance.ExportedFunction(abi.ExportDescribe).Call(c.context(ctx))
	check(err)
	described, err := readDescriptors(c.output)
	check(err)
	byName := interceptorsByName(described)
	f := instance.ExportedFunction(abi.ExportInvoke)
	stack := make([]uint64, 1)
	return func(inv abi.Invocation) {
		c := newCall(abi.AppendCall(make([]byte, 0, len(inv.Payload)+512), &inv))
		stack[0] = uint64(len(c.input))
		check(f.CallWithStack(c.context(ctx), stack))
		check(wire.Strict(c.output))
		_, err := abi.ReadAnswer(c.output, byName[inv.Name], inv.Phase)
		check(err)
	}
}
