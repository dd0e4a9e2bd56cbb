package main

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"

	"github.com/weir-mcp/weir/bench/guests"
)

// The rows: what stands between client and backend.
const (
	rowDirect  = "direct"
	rowLines   = "bare line relay"
	rowReverse = "buffered ReverseProxy"
	rowWeir    = "**weir**"
	rowOne     = "**weir: 1 module**, of weir's SDK for Go"
	rowThree   = "**weir: 3 modules**, Go, Rust, C"
	rowSDK     = "**weir: 3 modules**, the Go one of the SDK"
	rowTyped   = "typed proxy"
)

// The pairs of transports: the client's and the backend's.
const (
	stdioToStdio = "stdio-stdio"
	stdioToHTTP  = "stdio-http"
	httpToStdio  = "http-stdio"
	httpToHTTP   = "http-http"
)

var pairNames = []string{stdioToStdio, httpToHTTP, stdioToHTTP, httpToStdio}

func clientOf(pair string) string {
	if pair == stdioToStdio || pair == stdioToHTTP {
		return "stdio"
	}
	return "http"
}

func backendOf(pair string) string {
	if pair == stdioToStdio || pair == httpToStdio {
		return "stdio"
	}
	return "http"
}

func rowsOf(pair string) []string {
	switch pair {
	case stdioToStdio:
		return []string{rowDirect, rowLines, rowWeir, rowOne, rowThree, rowSDK, rowTyped}
	case httpToHTTP:
		return []string{rowDirect, rowReverse, rowWeir, rowOne, rowThree, rowSDK, rowTyped}
	}
	return []string{rowDirect, rowWeir, rowOne, rowThree, rowSDK, rowTyped}
}

// The loads.
const (
	load1K   = "1KB"
	load64K  = "64KB"
	loadJSON = "64KB-json"
	load1M   = "1MB"
	loadList = "list"
)

var loads = []*load{
	newLoad(load1K, "tools/call", guests.Text(1<<10), 8),
	newLoad(load64K, "tools/call", guests.Text(64<<10), 8),
	newLoad(loadJSON, "tools/call", guests.Payload(64<<10), 8),
	newLoad(load1M, "tools/call", guests.Text(1<<20), 2),
	newLoad(loadList, "tools/list", []byte("{}"), 0),
}

func loadNamed(name string) *load {
	return loads[slices.IndexFunc(loads, func(l *load) bool { return l.name == name })]
}

func loadNames() (names []string) {
	for _, l := range loads {
		names = append(names, l.name)
	}
	return names
}

// open starts what stands in a row and shakes hands.
func (b *bench) open(pair, row string) (caller, error) {
	backend := []string{b.self, "role:backend"}
	if backendOf(pair) == "http" {
		backend = []string{b.httpBackend}
	}
	var command []string
	switch row {
	case rowDirect:
		if command = backend; backendOf(pair) == "http" {
			return b.met(newHTTPCaller(b.ctx, b.httpBackend))
		}
		c, err := b.pipe(command...)
		return b.metAfter(c, err)
	case rowLines:
		command = append([]string{b.self, "role:line-relay"}, backend...)
	case rowReverse:
		command = append([]string{b.self, "role:reverse-proxy"}, backend...)
	case rowTyped:
		command = append([]string{b.self, "role:typed-proxy", clientOf(pair)}, backend...)
	default:
		command = b.gateway(pair, modulesOf[row], backend)
	}
	if clientOf(pair) == "stdio" {
		c, err := b.pipe(command...)
		return b.metAfter(c, err)
	}
	url, err := b.serve(command...)
	if err != nil {
		return nil, err
	}
	return b.met(newHTTPCaller(b.ctx, url))
}

// modulesOf are the hosts of the modules in a row, each with one.
var modulesOf = map[string][]string{rowOne: {"sdk"}, rowThree: {"go", "rust", "c"}, rowSDK: {"sdk", "rust", "c"}}

// gateway is the command of weir with these modules.
func (b *bench) gateway(pair string, modules, backend []string) []string {
	command := []string{b.weir, "gateway"}
	for _, host := range modules {
		command = append(command, "--hosts", host+"="+b.modules[host])
	}
	if clientOf(pair) == "http" {
		command = append(command, "--http", "127.0.0.1:0")
	}
	if backendOf(pair) == "http" {
		return append(command, "--backend", backend[0])
	}
	return append(append(command, "--"), backend...)
}

func (b *bench) metAfter(c caller, err error) (caller, error) {
	if err != nil {
		return nil, err
	}
	return b.met(c)
}

// met has shaken hands.
func (b *bench) met(c caller) (caller, error) {
	for _, message := range []string{
		`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"bench","version":"1"}}}`,
		`{"jsonrpc":"2.0","method":"notifications/initialized"}`,
	} {
		if _, err := c.exchange([]byte(message + "\n")); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// works checks that a row does what it stands for: the answer is the backend's,
// byte for byte unless types were in between, and the addresses reach the backend
// exactly where there are no modules.
func works(c caller, row string) error {
	for _, l := range loads {
		message := l.next(nil)
		answer, err := c.exchange(message)
		if err != nil {
			return fmt.Errorf("%s: %w", l.name, err)
		}
		if err := checked(answer); err != nil {
			return fmt.Errorf("%s: %w", l.name, err)
		}
		want := answers().list
		if l.name != loadList {
			want = answers().result(message)
		}
		if row != rowTyped && !bytes.Contains(answer, want) {
			return fmt.Errorf("%s: the answer is not the backend's: %.200q", l.name, answer)
		}
	}
	if row == rowTyped {
		return nil
	}
	if _, err := c.exchange(loads[0].next(nil)); err != nil {
		return err
	}
	answer, err := c.exchange([]byte(`{"jsonrpc":"2.0","id":1,"method":` + methodSeen + "}\n"))
	if err != nil {
		return err
	}
	_, n, _ := bytes.Cut(answer, []byte(`"addresses":`))
	end := slices.IndexFunc(n, func(b byte) bool { return b < '0' || b > '9' })
	if end < 0 {
		return fmt.Errorf("what the backend has seen is not known: %.200q", answer)
	}
	addresses, err := strconv.Atoi(string(n[:end]))
	if governed := len(modulesOf[row]) > 0; err == nil && governed != (addresses == 0) {
		err = fmt.Errorf("%d addresses have reached the backend", addresses)
	}
	return err
}
