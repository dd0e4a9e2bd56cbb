package meter_test

import (
	"errors"
	"fmt"

	"github.com/weir-mcp/weir/runtime/meter"
)

func ExampleParse() {
	// A module that exports one function, and has a custom section.
	b := []byte("\x00asm\x01\x00\x00\x00" +
		"\x01\x05\x01\x60\x00\x01\x7f" + // a type: () -> i32
		"\x03\x02\x01\x00" + // a function of it
		"\x07\x11\x01\x0dweir_describe\x00\x00" + // its export
		"\x0a\x06\x01\x04\x00\x41\x00\x0b" + // its body: 0
		"\x00\x05\x04note")

	m, err := meter.Parse(b)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, e := range m.Exports {
		fmt.Println(e.Name, e.Kind, e.Type)
	}
	fmt.Println(len(b), "bytes, for the engine", len(m.Stripped()))

	_, err = meter.Parse([]byte("\x00asm\x01\x00\x00\x00\x05\x04\x01\x03\x01\x02"))
	fmt.Println(err)
	fmt.Println(errors.Is(err, meter.ErrUnsupported))
	// Output:
	// weir_describe func () -> i32
	// 53 bytes, for the engine 46
	// unsupported feature: memory, offset 0xb: threads: build the module without it
	// true
}

func ExampleModule_Rewrite() {
	// A module whose start function never ends.
	m, err := meter.Parse([]byte("\x00asm\x01\x00\x00\x00" +
		"\x01\x04\x01\x60\x00\x00" + // a type: () -> ()
		"\x03\x02\x01\x00" + // a function of it
		"\x05\x03\x01\x00\x01" + // a memory of a page
		"\x08\x01\x00" + // the start function
		"\x0a\x09\x01\x07\x00\x03\x40\x0c\x00\x0b\x0b")) // loop br 0 end
	if err != nil {
		fmt.Println(err)
		return
	}
	r, err := m.Rewrite(meter.Options{MemoryPages: 1024, DeferStart: true})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("restorable:", r.Restorable(), "- pages:", r.Memory.Min, "to", r.Memory.Max)

	out, err := meter.Parse(r.Binary)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, i := range out.Imports {
		fmt.Println("import", i.Module, i.Name, i.Type)
	}
	for _, e := range out.Exports {
		fmt.Println("export", e.Name, e.Kind)
	}
	// Output:
	// restorable: true - pages: 1 to 1024
	// import weir:meter exhausted (i64) -> i64
	// export weir:start func
	// export weir:fuel global
	// export weir:refused global
}
