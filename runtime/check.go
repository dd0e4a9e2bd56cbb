package runtime

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/weir-mcp/weir/abi"
	"github.com/weir-mcp/weir/runtime/meter"
)

// Flavour is one of the two ways to be an interceptor module (abi.md).
type Flavour string

// The flavours.
const (
	// Reactor: the host calls the module's exports.
	Reactor Flavour = "reactor"
	// Command: a WASI command, run anew for each call, JSON on stdin and stdout.
	Command Flavour = "command"
)

// parse reads a module strictly and explains a refusal to who built it.
func parse(wasm []byte) (*meter.Module, error) {
	m, err := meter.Parse(wasm)
	switch {
	case err == nil:
		return m, nil
	case errors.Is(err, meter.ErrComponent):
		return nil, fmt.Errorf("%w; componentize-style and wasip2 toolchains make components: build for WASI preview 1 (Rust: wasm32-unknown-unknown or wasm32-wasip1, Go: GOOS=wasip1)", err)
	case errors.Is(err, meter.ErrNotWasm):
		return nil, fmt.Errorf("%w; if it is source or text format, compile it first", err)
	case errors.Is(err, meter.ErrTruncated):
		return nil, fmt.Errorf("%w; the file is incomplete: copy it again, under another name first, and rename it", err)
	default:
		return nil, err
	}
}

// check decides whether a module is an interceptor module that stays within
// its limits and grants, and of which flavour.
func check(m *meter.Module, file string, limits Limits, grants Grants) (Flavour, error) {
	flavour, err := checkExports(m)
	if err != nil {
		return "", err
	}
	if err := checkImports(m, file, grants); err != nil {
		return "", err
	}
	return flavour, checkSizes(m, limits)
}

// hostFuncs finds the functions that a module may import by module and name.
var hostFuncs = func() map[[2]string]meter.FuncType {
	funcs := map[[2]string]meter.FuncType{}
	for _, f := range guestFuncs() {
		funcs[[2]string{f.Module, f.Name}] = f.Type
	}
	return funcs
}()

// checkImports refuses whatever a module asks for that it does not get, all of
// it in one error.
func checkImports(m *meter.Module, file string, grants Grants) error {
	var wrong []string
	for _, i := range m.Imports {
		if complaint := checkImport(i, file, grants); complaint != "" {
			wrong = append(wrong, complaint)
		}
	}
	if wrong == nil {
		return nil
	}
	slices.Sort(wrong)
	wrong = slices.Compact(wrong)
	const shown = 20
	if more := len(wrong) - shown; more > 0 {
		wrong = append(wrong[:shown], fmt.Sprintf("and %d more", more))
	}
	return fmt.Errorf("the module imports what it does not get: %s", strings.Join(wrong, "; "))
}

// checkImport says what is wrong with an import, "" when nothing is.
func checkImport(i meter.Import, file string, grants Grants) string {
	name := importName(i)
	if i.Kind != meter.KindFunc {
		return fmt.Sprintf("%s is a %s: a module may import functions only, and must define its own memory", name, i.Kind)
	}
	if want, ok := hostFuncs[[2]string{i.Module, i.Name}]; ok {
		if !want.Equal(i.Type) {
			return fmt.Sprintf("%s has the type %v, it must be %v", name, i.Type, want)
		}
		if grant := grantImports[i.Name]; i.Module == abi.ImportModule && grant != "" && !grants.opens(grant) {
			return fmt.Sprintf("%s needs the grant %s, which the line %s of its host in weir.yaml gives it", name, grant, GrantLine(file, grant))
		}
		return ""
	}
	switch {
	case i.Module == abi.ImportModule && grantImports[i.Name] != "":
		grant := grantImports[i.Name]
		return fmt.Sprintf("%s needs the grant %s, which this version of weir does not offer yet (it will be granted in weir.yaml by the line %s)", name, grant, GrantLine(file, grant))
	case i.Module == abi.ImportModule:
		return name + " does not exist in ABI version 1"
	case i.Module == wasiModule:
		return name + " does not exist in WASI preview 1"
	case i.Module == "wasi_unstable":
		return name + " is of an older WASI: build for wasi_snapshot_preview1"
	case strings.HasPrefix(i.Module, "wasi:"):
		return name + " is of WASI preview 2: build a core module for preview 1"
	default:
		return name + " is of a module that weir does not have"
	}
}

// importName is the two names of an import, safe to print.
func importName(i meter.Import) string { return printable(i.Module) + "." + printable(i.Name) }

// printable quotes a guest's name unless it is plain and short.
func printable(name string) string {
	const longest = 100
	if len(name) > longest {
		name = strings.ToValidUTF8(name[:longest], "") + "…"
	}
	for _, r := range name {
		if r <= ' ' || r == '"' || r == '\\' || r > '~' {
			return fmt.Sprintf("%+q", name)
		}
	}
	if name == "" {
		return `""`
	}
	return name
}

// reactorExports are the functions that a reactor exports, and whether it must.
var reactorExports = []struct {
	name string
	typ  meter.FuncType
	must bool
}{
	{abi.ExportDescribe, signature("", "i"), true},
	{abi.ExportInvoke, signature("i", "i"), true},
	{abi.ExportInitialize, signature("", ""), false},
	{abi.ExportWarmup, signature("", "i"), false},
	{abi.ExportReseed, signature("I", ""), false},
}

// checkExports tells the flavour by what the module exports.
func checkExports(m *meter.Module) (Flavour, error) {
	exports := make(map[string]meter.Export, len(m.Exports))
	var others []string // markers of other ABI versions
	for _, e := range m.Exports {
		exports[e.Name] = e
		if e.Name != abi.ExportMarker && strings.HasPrefix(e.Name, abi.ExportMarkerPrefix) {
			others = append(others, printable(strings.TrimPrefix(e.Name, abi.ExportMarkerPrefix)))
		}
	}
	_, marked := exports[abi.ExportMarker]
	_, started := exports[abi.ExportStart]
	if !marked && len(others) > 0 {
		return "", fmt.Errorf("the module speaks ABI version %s; this weir speaks %d: rebuild it with a matching SDK", strings.Join(others, ", "), abi.ABIVersion)
	}
	if !marked && !started {
		return "", fmt.Errorf("not an interceptor module: it exports neither %s (a reactor, which the weir SDKs build; in Go: -buildmode=c-shared) nor %s (a WASI command)", abi.ExportMarker, abi.ExportStart)
	}

	var wrong []string
	require := func(name string, typ meter.FuncType, must bool) {
		e, ok := exports[name]
		switch {
		case !ok && must:
			wrong = append(wrong, fmt.Sprintf("%s %v is missing", name, typ))
		case ok && e.Kind != meter.KindFunc:
			wrong = append(wrong, fmt.Sprintf("%s is a %s, it must be a function %v", name, e.Kind, typ))
		case ok && !e.Type.Equal(typ):
			wrong = append(wrong, fmt.Sprintf("%s has the type %v, it must be %v", name, e.Type, typ))
		}
	}
	switch e, ok := exports[abi.ExportMemory]; {
	case !ok:
		wrong = append(wrong, abi.ExportMemory+" is missing")
	case e.Kind != meter.KindMemory:
		wrong = append(wrong, fmt.Sprintf("%s is a %s, it must be the linear memory", abi.ExportMemory, e.Kind))
	}
	flavour := Command
	if marked {
		flavour = Reactor
		require(abi.ExportMarker, signature("", ""), true)
		for _, e := range reactorExports {
			require(e.name, e.typ, e.must)
		}
	} else {
		require(abi.ExportStart, signature("", ""), true)
	}
	if wrong != nil {
		return "", fmt.Errorf("the exports of a %s module are wrong: %s", flavour, strings.Join(wrong, "; "))
	}
	return flavour, nil
}

// checkSizes refuses a module that asks from the start for more than it gets.
func checkSizes(m *meter.Module, limits Limits) error {
	if m.Memory != nil && m.Memory.Min > limits.pages() {
		return fmt.Errorf("the module declares %d bytes of memory, its limit (memory) is %d", int64(m.Memory.Min)*pageBytes, limits.Memory)
	}
	var elements uint64
	for _, t := range m.Tables {
		elements += uint64(t.Min)
	}
	if elements > uint64(limits.TableElements) {
		return fmt.Errorf("the module declares tables of %d elements, its limit (table elements) is %d", elements, limits.TableElements)
	}
	return nil
}
