package meter

import "slices"

// facts are what the rewriting finds out about a module's state.
type facts struct {
	// dataUsed: an instruction refers to a data segment, so that they must
	// stay as they are.
	dataUsed bool
	found    []string
}

// note keeps a reason why a module cannot be restored.
func (f *facts) note(reason string) {
	if !slices.Contains(f.found, reason) {
		f.found = append(f.found, reason)
	}
}

// reasons gives them sorted.
func (f *facts) reasons() []string {
	slices.Sort(f.found)
	return f.found
}

// declared notes what the declarations tell.
func (f *facts) declared(m *Module) {
	for _, t := range m.Tables {
		if t.Imported {
			f.note("imports a table")
		}
	}
	for _, e := range m.Exports {
		if e.Kind == KindTable {
			f.note("exports a table")
		}
	}
	if m.Memory != nil && m.Memory.Imported {
		f.note("imports its memory")
	}
	for _, g := range m.Globals {
		switch {
		case !g.Mutable:
		case g.Imported:
			f.note("imports a mutable global")
		case !g.Type.isNumber():
			f.note("has a mutable global of type " + g.Type.String())
		}
	}
}

// instruction notes what an instruction tells.
func (f *facts) instruction(op opcode) {
	switch op {
	case opTableSet:
		f.note("uses table.set")
	case opTableInit:
		f.note("uses table.init")
	case opTableCopy:
		f.note("uses table.copy")
	case opTableGrow:
		f.note("uses table.grow")
	case opTableFill:
		f.note("uses table.fill")
	case opElemDrop:
		f.note("uses elem.drop")
	case opDataDrop:
		f.note("uses data.drop")
		f.dataUsed = true
	case opMemoryInit:
		f.dataUsed = true
	}
}
