// Command pii-redactor is an interceptor module that takes personal data out of
// what passes between MCP clients and servers: e-mail addresses, phone numbers,
// IBANs, payment card numbers and US social security numbers. README.md is its
// manual page. Build it for WebAssembly with
//
//	go generate .
//
// or with any Go toolchain, without this clone's tools:
//
//	GOOS=wasip1 GOARCH=wasm go build -buildmode=c-shared -trimpath -ldflags='-s -w' -o pii-redactor.wasm .
//
// Built natively it does nothing: a reactor module has no use for main.
package main

import "github.com/weir-mcp/weir/guest"

//go:generate go run ../../internal/guestbuild/buildguest -o ../interceptors/ .

func init() {
	guest.Mutator(guest.Descriptor{
		Name:        "pii-redactor",
		Version:     "1.0.0",
		Description: "Replaces e-mail addresses, phone numbers, IBANs, payment cards and US social security numbers in all strings.",
		Hooks: guest.Hooks{
			{Phase: guest.Request, Events: carriers},
			{Phase: guest.Response, Events: append(carriers, guest.ResourcesRead)},
		},
		// Early, so that no other mutator is shown what this one takes away.
		PriorityHint: guest.Priority(-1000),
		ConfigSchema: schema,
	}, redact)
}

// carriers are the events in whose both phases free text crosses. The request
// of resources/read is only an address.
var carriers = []string{guest.ToolsCall, guest.PromptsGet, guest.SamplingCreate, guest.ElicitationCreate, "llm/completion"}

func redact(c *guest.Call[config]) (guest.Mutation, error) {
	r := redactor{config: &c.Config}
	edited, changed, err := guest.EditStrings(c.Payload, func(at guest.Path, text string) string {
		now := r.redact(text)
		if now == text || exempt(&c.Operation, at, text) {
			return text
		}
		r.note()
		return now
	})
	if err != nil || !changed {
		return guest.Unchanged(), err
	}
	return guest.Replace(edited).WithInfo(r.info()), nil
}

func main() {}
