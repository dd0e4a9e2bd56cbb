package hosts

import (
	"fmt"
	"io"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-mcp/weir/internal/wire"
)

func answersTo(r io.Reader) *answers {
	return &answers{lines: wire.NewLineReader(r, 1<<20), closer: io.NopCloser(r), log: slog.New(slog.DiscardHandler)}
}

func TestOfWhatAHostSaysOnlyAnswersPass(t *testing.T) {
	const failed = `{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"the answer was refused","data":{"reason":"bad_output"}}}` + "\n"
	for name, test := range map[string]struct{ line, passes string }{
		"a result":               {`{"jsonrpc":"2.0","id":1,"result":{}}`, `{"jsonrpc":"2.0","id":1,"result":{}}` + "\n"},
		"an error":               {`{"jsonrpc":"2.0","id":1,"error":{}}`, `{"jsonrpc":"2.0","id":1,"error":{}}` + "\n"},
		"a result that is twice": {`{"jsonrpc":"2.0","id":1,"result":{},"result":{}}`, failed},
		"a ping":                 {`{"jsonrpc":"2.0","id":"p","method":"ping","params":{"x":"much"}}`, `{"jsonrpc":"2.0","id":"p","method":"ping"}` + "\n"},
		"a ping with a long id":  {`{"jsonrpc":"2.0","id":"` + strings.Repeat("p", maxPingID) + `","method":"ping"}`, ""},
		"another request":        {`{"jsonrpc":"2.0","id":1,"method":"sampling/createMessage","params":{}}`, ""},
		"a notification":         {`{"jsonrpc":"2.0","method":"notifications/message","params":{}}`, ""},
		"no message":             {`hello`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := io.ReadAll(answersTo(strings.NewReader(test.line + "\n")))
			require.NoError(t, err)
			require.Equal(t, test.passes, string(got))
		})
	}
}

// The SDK queues requests for as long as the host does not read their answers.
func TestAHostCannotPingWithoutEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		second := func(yield func(string)) {
			for i := range 10 * maxPingsPerSecond {
				yield(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"ping"}`, i))
			}
		}
		a := answersTo(nil)
		for range 3 {
			passed := 0
			second(func(line string) {
				if a.admit([]byte(line)) != nil {
					passed++
				}
			})
			require.Equal(t, maxPingsPerSecond, passed)
			time.Sleep(time.Second)
		}
	})
}
