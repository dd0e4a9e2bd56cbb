package memory_test

import (
	"fmt"

	"github.com/weir-mcp/weir/runtime/memory"
)

// The memory of a guest, which is put back after it has grown and been written
// to.
func Example() {
	const page = 64 << 10
	account := memory.NewAccount(1 << 30)
	m, err := memory.New(4*page, account, memory.Auto)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer m.Free()
	copy(m.Resize(page), "as it was loaded")
	image, err := m.Capture()
	if err == nil {
		defer image.Free()
		err = m.Attach(image)
	}
	if err != nil {
		fmt.Println(err)
		return
	}

	copy(m.Resize(3*page), "what a call left")
	m.Answer(page) // the engine grows it, and gets this
	m.Resize(4 * page)
	if err := m.Restore(); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%s, %d bytes of %d\n", m.Resize(page)[:16], m.Size(), account.Used()-int64(image.Size()))
	// Output: as it was loaded, 65536 bytes of 65536
}
