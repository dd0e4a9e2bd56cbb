package mirror_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-mcp/weir/internal/mirror"
)

func TestTraceparent(t *testing.T) {
	h := http.Header{}
	require.Empty(t, mirror.Traceparent(h))
	h.Add("traceparent", "a")
	require.Equal(t, "a", mirror.Traceparent(h))
	h.Add("Traceparent", "b")
	require.Empty(t, mirror.Traceparent(h), "which of the two is the caller's, nobody can tell")
}
