package logbook_test

import (
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-mcp/weir/internal/logbook"
)

func Example() {
	var book logbook.Book
	book.Text().Warn("a module is refused", "file", "a.wasm")
	book.Text().Info("a module serves", "file", "b.wasm")
	fmt.Println(book.Count("level=WARN"), book.Count("module", "file=b.wasm"), book.Count("host"))
	// Output: 1 1 0
}

func TestRecords(t *testing.T) {
	var book logbook.Book
	require.Empty(t, book.Records(t))
	var all sync.WaitGroup
	for i := range 20 {
		all.Go(func() { book.JSON().Info("hello", "i", i) })
	}
	all.Wait()
	require.Len(t, book.Records(t), 20)
	require.Equal(t, "hello", book.Records(t)[0]["msg"])
}
