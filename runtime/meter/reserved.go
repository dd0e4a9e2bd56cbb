package meter

import "strings"

// The names that a rewritten module uses towards its host. No module may use
// them itself: [Module.Rewrite] refuses a module that imports from, or exports
// under, a name that begins with ReservedPrefix.
const (
	// ReservedPrefix begins every name that the rewriting adds.
	ReservedPrefix = "weir:"

	// ImportModule and ImportName name the function (i64) -> i64 that every
	// rewritten module imports, as its last import. The guest calls it when
	// its fuel has fallen below zero, with what is left: a negative number.
	// It returns the fuel to go on with, or ends the call.
	ImportModule = ReservedPrefix + "meter"
	ImportName   = "exhausted"

	// ExportFuel is the mutable i64 global that holds the fuel. It begins at
	// zero, so that the first check of an instance calls the host.
	ExportFuel = ReservedPrefix + "fuel"

	// ExportRefused is the mutable i32 global that collects what growth was
	// refused to the guest: RefusedMemory, RefusedTable. Nothing in the guest
	// reads it; the host resets it.
	ExportRefused = ReservedPrefix + "refused"

	// ExportStart is the function () -> () that runs the start function, when
	// Options.DeferStart was set and the module has one.
	ExportStart = ReservedPrefix + "start"

	// exportGlobal and the index of a global name its export.
	exportGlobal = ReservedPrefix + "global:"
)

// The bits of the global ExportRefused.
const (
	// RefusedMemory: a memory.grow gave -1.
	RefusedMemory = 1 << iota
	// RefusedTable: a table.grow gave -1.
	RefusedTable
)

// checkReserved refuses a module that uses a reserved name.
func (m *Module) checkReserved() error {
	refuse := func(section, what, name string) error {
		return &Error{
			Kind: ErrReserved, Section: section, Function: -1,
			Reason: what + " that begins with " + ReservedPrefix + " belongs to the host: rename " + quote(name),
		}
	}
	for _, i := range m.Imports {
		if strings.HasPrefix(i.Module, ReservedPrefix) {
			return refuse("import", "an import module", i.Module)
		}
	}
	for _, e := range m.Exports {
		if strings.HasPrefix(e.Name, ReservedPrefix) {
			return refuse("export", "an export", e.Name)
		}
	}
	return nil
}
