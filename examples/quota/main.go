// Command quota is an interceptor module that lets each caller make so many tool
// calls a minute and no more. README.md is its manual page. It remembers calls in
// the store that weir.yaml grants it. Build it for WebAssembly with
//
//	go generate .
//
// or with any Go toolchain, without this clone's tools:
//
//	GOOS=wasip1 GOARCH=wasm go build -buildmode=c-shared -trimpath -ldflags='-s -w' -o quota.wasm .
//
// Built natively it does nothing: a reactor module has no use for main.
package main

import (
	"time"

	"github.com/weir-mcp/weir/guest"
)

//go:generate go run ../../internal/guestbuild/buildguest -o interceptors/ .

type config struct {
	Calls uint32 `json:"calls" doc:"tool calls that one caller may make in a minute; 60 by default"`
}

func (c *config) SetDefaults() { c.Calls = 60 }

func init() {
	guest.Validator(guest.Descriptor{
		Name:        "quota",
		Version:     "1.0.0",
		Description: "Lets each caller make so many tool calls a minute and no more.",
		Hooks:       guest.OnRequest(guest.ToolsCall),
	}, func(c *guest.Call[config]) (guest.Verdict, error) {
		n, err := guest.KV().Add("calls", 1, time.Minute)
		if err != nil {
			return guest.Verdict{}, err // not counted is not allowed
		}
		if n > int64(c.Config.Calls) {
			return guest.Deny("more than %d tool calls in a minute; try again later", c.Config.Calls), nil
		}
		return guest.Allow(), nil
	})
}

func main() {}
