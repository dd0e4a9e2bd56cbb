package relay

import (
	"bufio"
	"context"
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-mcp/weir/internal/leak"
)

// A backend that writes what is refused, more than anybody keeps, and reads
// nothing meanwhile: what else it says still reaches the client.
func TestABackendThatIsRefusedAndDoesNotRead(t *testing.T) {
	leak.Goroutines(t, "gateway/relay.(")
	fromClient, client := io.Pipe()
	answers, toClient := io.Pipe()
	unread, toBackend := io.Pipe()
	fromBackend, backend := io.Pipe()
	ran := make(chan error, 1)
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		ran <- Run(ctx, Lines(fromClient, toClient, 1<<20), Lines(fromBackend, toBackend, 1<<20), Options{Grace: 10 * time.Millisecond})
	}()
	said := notification("notifications/message", `{"a":1}`)
	wrote := make(chan error, 1)
	go func() {
		for range 4 * refusalsKept {
			if _, err := io.WriteString(backend, "{\"level\":\"info\"}\n"); err != nil {
				wrote <- err
				return
			}
		}
		_, err := io.WriteString(backend, said+"\n")
		wrote <- err
	}()
	got := make(chan string, 1)
	go func() {
		line, _ := bufio.NewReader(answers).ReadString('\n')
		got <- line
	}()
	select {
	case line := <-got:
		require.Equal(t, said+"\n", line)
	case <-time.After(patience):
		require.FailNow(t, "nothing arrived")
	}
	require.NoError(t, <-wrote)
	cancel()
	client.Close()
	backend.Close()
	unread.Close()
	answers.Close()
	<-ran
}
