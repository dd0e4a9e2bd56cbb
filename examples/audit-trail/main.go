// Command audit-trail is an interceptor module that writes one line of JSON to
// the operator's log for each request and each response: who did what, when,
// and how large it was. It never writes what was in them. README.md is its
// manual page. Build it for WebAssembly with
//
//	go generate .
//
// or with any Go toolchain, without this clone's tools:
//
//	GOOS=wasip1 GOARCH=wasm go build -buildmode=c-shared -trimpath -ldflags='-s -w' -o audit-trail.wasm .
//
// Built natively it does nothing: a reactor module has no use for main.
package main

import (
	"encoding/json"

	"github.com/weir-mcp/weir/guest"
)

//go:generate go run ../../internal/guestbuild/buildguest -o ../interceptors/ .

func init() {
	guest.Sink(guest.Descriptor{
		Name:        "audit-trail",
		Version:     "1.0.0",
		Description: "Logs who called what and when, with sizes and without payloads.",
		Hooks:       guest.OnBoth("*"),
		// There is nothing to configure: an option is a mistake.
		ConfigSchema: json.RawMessage(`{"type":"object","additionalProperties":false}`),
	}, record)
}

func record(c *guest.Call[guest.NoConfig]) (guest.Record, error) {
	guest.Log.Infof("%s", line(&c.Operation))
	return guest.Recorded().Metric("bytes", float64(len(c.Payload))), nil
}

func main() {}
