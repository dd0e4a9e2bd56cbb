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
