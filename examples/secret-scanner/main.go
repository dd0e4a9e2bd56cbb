// Command secret-scanner is an interceptor module that refuses what carries
// credentials: tokens and keys of the big providers, and private keys. It says
// of what kind they are and where they lie, and never what they are. README.md
// is its manual page. Build it for WebAssembly with
//
//	go generate .
//
// or with any Go toolchain, without this clone's tools:
//
//	GOOS=wasip1 GOARCH=wasm go build -buildmode=c-shared -trimpath -ldflags='-s -w' -o secret-scanner.wasm .
//
// Built natively it does nothing: a reactor module has no use for main.
package main

import "github.com/weir-mcp/weir/guest"

//go:generate go run ../../internal/guestbuild/buildguest -o ../interceptors/ .

func init() {
	guest.Validator(guest.Descriptor{
		Name:        "secret-scanner",
		Version:     "1.0.0",
		Description: "Refuses messages that carry API tokens, access keys or private keys.",
		// Requests are how a secret leaves, responses how it gets into a model's
		// context, from where it leaves later.
		Hooks: guest.OnBoth(guest.ToolsCall, guest.PromptsGet, guest.ResourcesRead, guest.ResourcesSubscribe,
			guest.SamplingCreate, guest.ElicitationCreate, "llm/completion"),
		ConfigSchema: schema,
	}, scan)
}

func scan(c *guest.Call[config]) (guest.Verdict, error) {
	var r report
	err := guest.WalkStrings(c.Payload, func(at guest.Path, text string) bool {
		if isBlob(at.Name(), text) {
			return true
		}
		findSecrets(text, at.Name(), func(s secret) {
			if c.Config.wants(s.kind) {
				r.add(at, s)
			}
		})
		return true
	}, guest.AndNames())
	if err != nil {
		return guest.Verdict{}, err
	}
	return guest.Judge(r.findings()...), nil
}

func main() {}
