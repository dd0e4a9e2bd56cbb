package expose

import (
	"bytes"
	"io"
	"net/http"

	"github.com/weir-mcp/weir/abi"
	"github.com/weir-mcp/weir/internal/wire"
)

// Route sends requests of interceptors/list and interceptor/invoke to one handler
// and everything else, as it came, to another. Both judge for themselves what is
// malformed or larger than limit bytes.
func Route(interceptors, rest http.Handler, limit int64) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost {
			rest.ServeHTTP(w, r)
			return
		}
		body, err := io.ReadAll(io.LimitReader(r.Body, limit+1))
		handler := rest
		if err == nil && int64(len(body)) <= limit {
			if m, err := wire.Read(body); err == nil && (m.Method == abi.MethodList || m.Method == abi.MethodInvoke) {
				handler = interceptors
			}
		}
		again := *r
		again.Body = &replayed{Reader: io.MultiReader(bytes.NewReader(body), failing{err}, r.Body), Closer: r.Body}
		handler.ServeHTTP(w, &again)
	})
}

// replayed is a body of which the beginning was read already.
type replayed struct {
	io.Reader
	io.Closer
}

// failing gives the error that reading ended with, if any.
type failing struct{ err error }

func (f failing) Read([]byte) (int, error) {
	if f.err != nil {
		return 0, f.err
	}
	return 0, io.EOF
}
