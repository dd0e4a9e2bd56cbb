package middleware

import (
	"context"
	"runtime"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"
)

// A server that lives for ever does not remember every session that it had.
func TestSessionsAreForgotten(t *testing.T) {
	known := &sessions{known: map[any]facts{}}
	size := func() int {
		known.mu.Lock()
		defer known.mu.Unlock()
		return len(known.known)
	}
	func() {
		s := mcp.NewServer(&mcp.Implementation{Name: "s"}, nil)
		s.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
			return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
				first := known.of(req.GetSession())
				require.NotEmpty(t, first.name)
				require.Equal(t, first, known.of(req.GetSession()), "one session, one name")
				return next(ctx, method, req)
			}
		})
		for range 3 {
			near, far := mcp.NewInMemoryTransports()
			_, err := s.Connect(t.Context(), far, nil)
			require.NoError(t, err)
			session, err := mcp.NewClient(&mcp.Implementation{Name: "c"}, nil).Connect(t.Context(), near, nil)
			require.NoError(t, err)
			_, err = session.ListTools(t.Context(), nil)
			require.NoError(t, err)
			require.NoError(t, session.Close())
		}
		require.Equal(t, 3, size())
	}()
	for deadline := time.Now().Add(time.Minute); size() > 0; {
		require.True(t, time.Now().Before(deadline), "sessions that are gone are still known")
		runtime.GC()
		runtime.Gosched()
	}
}
