// Faults is a Go guest that does what the tool's name says, for the tests of
// package runtime. What it does not know it allows.
package main

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"os"
	"runtime"
	"time"

	"github.com/weir-mcp/weir/guest"
)

func main() {}

func init() {
	guest.Validator(guest.Descriptor{Name: "guard", Hooks: guest.OnRequest(guest.ToolsCall)}, fault)
}

func fault(c *guest.Call[guest.NoConfig]) (guest.Verdict, error) {
	name, _ := guest.GetText(c.Payload, "name")
	switch name {
	case "loop":
		for {
		}
	case "recursion":
		fmt.Fprintln(os.Stderr, recurse(1))
	case "panic":
		panic("a guest's own words")
	case "exit":
		os.Exit(0)
	case "memory":
		var all [][]byte
		for {
			all = append(all, make([]byte, 1<<20))
			runtime.KeepAlive(all)
		}
	case "deadlock":
		select {}
	case "goroutines":
		go func() {
			for {
				runtime.Gosched()
			}
		}()
	case "hide":
		text, _ := guest.GetText(c.Payload, "arguments", "text")
		found := seek()
		hide(text)
		return facts(map[string]any{"secret": text, "found": found}), nil
	case "hide and seek":
		_ = seek()
		hide("s")
		return facts(map[string]any{"found": seek()}), nil
	case "sleep":
		before := time.Now()
		time.Sleep(time.Hour)
		slept := time.Since(before)
		return facts(map[string]any{"slept": slept >= time.Hour && slept < 2*time.Hour, "year": before.UTC().Year()}), nil
	case "reach":
		_, openErr := os.ReadFile("/etc/passwd")
		var b [8]byte
		_, _ = rand.Read(b[:])
		return facts(map[string]any{"open": openErr != nil, "env": os.Environ(), "random": fmt.Sprintf("%x", b)}), nil
	case "decode", "warm-up": // the latter is what a made-up call is for
		// What a guest does that knows its payload's shape.
		var request struct {
			Name      string
			Arguments map[string]any
		}
		if err := json.Unmarshal(c.Payload, &request); err != nil {
			return guest.Verdict{}, err
		}
		if request.Arguments["text"] == nil {
			return guest.Deny("no text"), nil
		}
	case "print":
		fmt.Println("to stdout")
		fmt.Fprintln(os.Stderr, "to stderr")
		guest.Log.Errorf("to the log")
	}
	return guest.Allow(), nil
}

func facts(m map[string]any) guest.Verdict {
	info, _ := json.Marshal(m)
	return guest.Allow().WithInfo(info)
}

//go:noinline
func recurse(n int) int { return recurse(n+1) + 1 }
