package mirror_test

import (
	"fmt"
	"maps"
	"net/http"
	"slices"

	"github.com/weir-mcp/weir/internal/mirror"
	"github.com/weir-mcp/weir/internal/wire"
)

// What a client sends with a call, and what a server makes of a lie.
func Example() {
	call, _ := wire.Read([]byte(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"query","arguments":{"region":"eu"}}}`))
	var tools mirror.Tools
	tools.Learn([]byte(`{"tools":[{"name":"query","inputSchema":{"properties":{"region":{"type":"string","x-mcp-header":"Region"}}}}]}`))

	h := http.Header{}
	mirror.Set(h, &call, &tools)
	for _, name := range slices.Sorted(maps.Keys(h)) {
		fmt.Println(name+":", h.Get(name))
	}

	h.Set("Mcp-Name", "harmless")
	fmt.Println(mirror.Check(h, &call))
	// Output:
	// Mcp-Method: tools/call
	// Mcp-Name: query
	// Mcp-Param-Region: eu
	// the header Mcp-Name does not match the body
}
