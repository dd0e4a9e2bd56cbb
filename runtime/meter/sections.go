package meter

// customSection notes the name of a custom section and skips the rest.
func (p *parser) customSection() {
	start := p.pos
	name := p.name("the name of a custom section")
	if len(p.m.Custom) == MaxItems {
		p.over(start, "custom sections", MaxItems, MaxItems+1)
	}
	if p.err != nil {
		return
	}
	p.m.Custom = append(p.m.Custom, name)
	p.pos = p.end
}

func (p *parser) typeSection() {
	n := p.count(MaxItems, "types")
	p.m.Types = make([]FuncType, 0, n)
	for ; n > 0 && p.err == nil; n-- {
		start := p.pos
		if form := p.byte("a type"); p.err == nil && form != 0x60 {
			if feature := foreignForms[form]; feature != "" {
				p.unsupported(start, feature)
			} else {
				p.fail(ErrMalformed, start, "unknown form of type %#x", form)
			}
			return
		}
		p.m.Types = append(p.m.Types, FuncType{
			Params:  p.valueTypes(MaxParams, "parameters"),
			Results: p.valueTypes(MaxResults, "results"),
		})
	}
}

func (p *parser) valueTypes(limit int, what string) []ValueType {
	n := p.count(limit, what)
	if n == 0 {
		return nil
	}
	types := make([]ValueType, n)
	for i := range types {
		types[i] = p.valueType()
	}
	return types
}

func (p *parser) importSection() {
	n := p.count(MaxItems, "imports")
	p.m.Imports = make([]Import, 0, n)
	for ; n > 0 && p.err == nil; n-- {
		p.importEntry()
	}
	p.m.imported = len(p.m.Functions)
}

func (p *parser) importEntry() {
	i := Import{Module: p.name("the module of an import"), Name: p.name("the name of an import")}
	start := p.pos
	i.Kind = Kind(p.byte("the kind of an import"))
	if p.err != nil {
		return
	}
	m := p.m
	switch i.Kind {
	case KindFunc:
		t := p.index(len(m.Types), "type")
		if p.err != nil {
			return
		}
		i.Index, i.Type = uint32(len(m.Functions)), m.Types[t]
		m.Functions = append(m.Functions, t)
	case KindTable:
		i.Index = uint32(len(m.Tables))
		m.Tables = append(m.Tables, p.table(true))
	case KindMemory:
		p.memory(true)
	case KindGlobal:
		i.Index = uint32(len(m.Globals))
		m.Globals = append(m.Globals, p.globalType(true))
	case 4:
		p.unsupported(start, featureExceptions)
	default:
		p.fail(ErrMalformed, start, "unknown kind of import %d", byte(i.Kind))
	}
	m.Imports = append(m.Imports, i)
}

// room reads how many of what a section adds to the have entries that are
// imported: both together are bounded.
func (p *parser) room(have int, what string) int {
	start := p.pos
	n := p.count(MaxItems, what)
	if have+n > MaxItems {
		p.over(start, what, MaxItems, int64(have+n))
		return 0
	}
	return n
}

func (p *parser) functionSection() {
	n := p.room(len(p.m.Functions), "functions")
	for ; n > 0 && p.err == nil; n-- {
		p.m.Functions = append(p.m.Functions, p.index(len(p.m.Types), "type"))
	}
}

func (p *parser) tableSection() {
	n := p.room(len(p.m.Tables), "tables")
	for ; n > 0 && p.err == nil; n-- {
		if p.left() > 0 && p.b[p.pos] == 0x40 {
			// A table with an initialiser.
			p.unsupported(p.pos, featureFuncRefs)
			return
		}
		p.m.Tables = append(p.m.Tables, p.table(false))
	}
}

func (p *parser) table(imported bool) Table {
	t := Table{Element: p.refType(), Imported: imported}
	start := p.pos
	t.Limits = p.limits()
	if t.HasMax && t.Max < t.Min {
		p.fail(ErrMalformed, start, "the table's minimum of %d elements is above its maximum of %d", t.Min, t.Max)
	}
	return t
}

func (p *parser) memorySection() {
	for n := p.count(MaxItems, "memories"); n > 0 && p.err == nil; n-- {
		p.memory(false)
	}
}

func (p *parser) memory(imported bool) {
	start := p.pos
	if p.m.Memory != nil {
		p.unsupported(start, featureMultiMemory)
		return
	}
	m := &Memory{Limits: p.limits(), Imported: imported}
	switch {
	case m.Min > MaxPages || m.Max > MaxPages:
		p.over(start, "pages of memory", MaxPages, int64(max(m.Min, m.Max)))
	case m.HasMax && m.Max < m.Min:
		p.fail(ErrMalformed, start, "the memory's minimum of %d pages is above its maximum of %d", m.Min, m.Max)
	}
	p.m.Memory = m
}

// limits reads the bounds of a table or a memory.
func (p *parser) limits() (l Limits) {
	start := p.pos
	flags := p.byte("the flags of limits")
	switch {
	case flags > 0x0f:
		p.fail(ErrMalformed, start, "unknown flags of limits %#x", flags)
	case flags&8 != 0:
		p.unsupported(start, featurePageSizes)
	case flags&4 != 0:
		p.unsupported(start, featureMemory64)
	case flags&2 != 0:
		p.unsupported(start, featureThreads)
	}
	l.Min = p.u32("a minimum")
	if l.HasMax = flags&1 != 0; l.HasMax {
		l.Max = p.u32("a maximum")
	}
	return l
}

func (p *parser) globalSection() {
	n := p.room(len(p.m.Globals), "globals")
	for ; n > 0 && p.err == nil; n-- {
		g := p.globalType(false)
		p.constExpr(g.Type)
		p.m.Globals = append(p.m.Globals, g)
	}
}

func (p *parser) globalType(imported bool) Global {
	g := Global{Type: p.valueType(), Imported: imported}
	start := p.pos
	switch mut := p.byte("the mutability of a global"); mut {
	case 0:
	case 1:
		g.Mutable = true
	case 2, 3:
		p.unsupported(start, featureThreads)
	default:
		p.fail(ErrMalformed, start, "unknown mutability %#x", mut)
	}
	return g
}

func (p *parser) exportSection() {
	start := p.pos
	n := p.count(MaxItems, "exports")
	p.m.Exports = make([]Export, 0, n)
	names := make(map[string]struct{}, n)
	for ; n > 0 && p.err == nil; n-- {
		start := p.pos
		e := p.exportEntry()
		if _, twice := names[e.Name]; twice {
			p.fail(ErrMalformed, start, "two exports are called %q", e.Name)
		}
		names[e.Name] = struct{}{}
		p.m.Exports = append(p.m.Exports, e)
	}
	p.lookUp(start)
}

// lookStep is how many exports are looked at in a unit of work: a nanosecond each
// on the default engine, which looks for the name of each function among all.
const lookStep = 512

// lookUp charges for that. The rewriting exports the mutable globals, too.
func (p *parser) lookUp(at int) {
	exports := len(p.m.Exports)
	for _, g := range p.m.Globals {
		if g.Mutable {
			exports++
		}
	}
	p.spend(at, uint64(exports)*uint64(len(p.m.Functions))/lookStep)
}

func (p *parser) exportEntry() Export {
	e := Export{Name: p.name("the name of an export")}
	start := p.pos
	e.Kind = Kind(p.byte("the kind of an export"))
	switch e.Kind {
	case KindFunc:
		if e.Index = p.index(len(p.m.Functions), "function"); p.err == nil {
			e.Type = p.m.Types[p.m.Functions[e.Index]]
		}
	case KindTable:
		e.Index = p.index(len(p.m.Tables), "table")
	case KindMemory:
		e.Index = p.index(p.memories(), "memory")
	case KindGlobal:
		e.Index = p.index(len(p.m.Globals), "global")
	case 4:
		p.unsupported(start, featureExceptions)
	default:
		p.fail(ErrMalformed, start, "unknown kind of export %d", byte(e.Kind))
	}
	return e
}

// memories is the size of the index space of memories.
func (p *parser) memories() int {
	if p.m.Memory == nil {
		return 0
	}
	return 1
}

func (p *parser) startSection() {
	start := p.pos
	f := p.index(len(p.m.Functions), "function")
	if p.err != nil {
		return
	}
	if t := p.m.Types[p.m.Functions[f]]; len(t.Params)+len(t.Results) != 0 {
		p.fail(ErrMalformed, start, "the start function %d is %s, it must be () -> ()", f, t)
	}
	p.m.Start = &f
}

func (p *parser) dataCountSection() {
	start := p.pos
	n := p.u32("the number of data segments")
	if n > MaxItems {
		p.over(start, "data segments", MaxItems, int64(n))
		return
	}
	p.dataCount = int(n)
}
