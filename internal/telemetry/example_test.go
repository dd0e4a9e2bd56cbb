package telemetry_test

import (
	"fmt"
	"net/http/httptest"
	"strings"

	"github.com/weir-mcp/weir/abi"
	"github.com/weir-mcp/weir/gateway/chain"
	"github.com/weir-mcp/weir/internal/telemetry"
)

func Example() {
	m := telemetry.New(telemetry.Options{Version: "v1.0.0"})
	m.Decided(abi.ToolsCall, abi.Request, &chain.Outcome{Status: abi.StatusSuccess})

	w := httptest.NewRecorder()
	m.Handler().ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	for line := range strings.Lines(w.Body.String()) {
		if strings.HasPrefix(line, "weir_operations_total") {
			fmt.Print(line)
		}
	}
	// Output:
	// weir_operations_total{event="tools/call",phase="request",status="success"} 1
}
