package runtime

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"github.com/weir-mcp/weir/abi"
	"github.com/weir-mcp/weir/runtime/memory"
	"github.com/weir-mcp/weir/runtime/meter"
)

// Facts is what can be said of a module without running it.
type Facts struct {
	// Flavour is empty when the exports are not those of an interceptor module;
	// Refused then says why.
	Flavour Flavour
	// Digest is the SHA-256 of the file, in hex; Size is its bytes.
	Digest string
	Size   int64
	// Imports and Exports are in file order.
	Imports []ImportFact
	Exports []ExportFact
	// MemoryMin is the memory that the module declares, in bytes; MemoryMax is
	// 0 when it declares no maximum.
	MemoryMin, MemoryMax int64
	// Functions counts the imported ones too; LargestBody is the largest
	// function's code in bytes.
	Functions, LargestBody int
	// Reset says how the module's state is made pristine for every call in this
	// process, and why where each call gets a fresh instance; it is empty for a
	// module that cannot be rewritten. A loaded module
	// tells what its engine does ([Module.Reset]).
	Reset string
	// Refused is nil when the module would load under the default limits, as
	// far as can be told without running it.
	Refused error
}

// ImportFact is an import of a module.
type ImportFact struct {
	Module, Name string
	// Type is a function's signature, or the kind of anything else.
	Type string
	// Grant is what the operator must grant for it, see [GrantLine]; empty when
	// nothing. Inspect supposes that what can be granted is.
	Grant string
	// Problem says why the module does not get it; empty when it does.
	Problem string
}

// ExportFact is an export of a module.
type ExportFact struct {
	Name string
	// Type is a function's signature, or the kind of anything else.
	Type string
}

// anyFile stands for the file's name in what Inspect says.
const anyFile = "FILE.wasm"

// Inspect reads a module without compiling or running it. It fails when the
// bytes are no module that the strict parser accepts.
func Inspect(wasm []byte) (Facts, error) {
	limits := DefaultLimits()
	if int64(len(wasm)) > limits.ModuleBytes {
		return Facts{}, fmt.Errorf("the file has %d bytes, the limit (module file) is %d", len(wasm), limits.ModuleBytes)
	}
	m, err := parse(wasm)
	if err != nil {
		return Facts{}, err
	}
	digest := sha256.Sum256(wasm)
	f := Facts{
		Digest: hex.EncodeToString(digest[:]), Size: int64(len(wasm)),
		Functions: len(m.Functions), LargestBody: m.LargestBody,
	}
	f.Flavour, _ = checkExports(m)
	_, f.Refused = check(m, anyFile, limits, Granted())
	rewritten, err := rewrite(m, limits)
	if err == nil {
		f.Reset = resetText(reset(f.Flavour, rewritten, memory.Best()))
	} else if f.Refused == nil {
		f.Refused = err
	}
	if m.Memory != nil {
		f.MemoryMin, f.MemoryMax = int64(m.Memory.Min)*pageBytes, int64(m.Memory.Max)*pageBytes
	}
	for _, i := range m.Imports {
		fact := ImportFact{Module: i.Module, Name: i.Name, Type: kindOrType(i.Kind, i.Type), Problem: checkImport(i, anyFile, Granted())}
		if i.Module == abi.ImportModule {
			fact.Grant = grantImports[i.Name]
		}
		f.Imports = append(f.Imports, fact)
	}
	for _, e := range m.Exports {
		f.Exports = append(f.Exports, ExportFact{Name: e.Name, Type: kindOrType(e.Kind, e.Type)})
	}
	return f, nil
}

func kindOrType(kind meter.Kind, typ meter.FuncType) string {
	if kind == meter.KindFunc {
		return typ.String()
	}
	return kind.String()
}
