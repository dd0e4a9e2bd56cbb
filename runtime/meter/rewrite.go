package meter

import (
	"encoding/binary"
	"slices"
	"strconv"
)

// Version is that of the rewriting and of the prices. Two rewritings of the same
// bytes with the same options and version give the same bytes, and with them the
// same fuel; it belongs into the key of every cache of what was made from them.
const Version = 3

// Options are what the operator and the engine ask of a rewriting.
type Options struct {
	// MemoryPages is the most pages of 64 KiB that the module's memory may
	// have, up to MaxPages. A declared maximum that is higher, or missing, is
	// lowered to it; a module that begins with more is refused.
	MemoryPages uint32
	// TableElements is the most elements that each of the module's tables may
	// have. A declared maximum that is higher, or missing, is lowered to it,
	// so that table.grow gives -1 past it; a module that begins with more is
	// refused.
	TableElements uint32
	// ResetRoom declares one page more than the memory may have (unless that
	// would be more than MaxPages), for hosts that shrink a memory back by a
	// growth that they answer themselves: engines ask only below the declared
	// maximum. Such a host must refuse the page to the guest.
	ResetRoom bool
	// DeferStart takes the start function out of instantiation and exports it
	// as ExportStart, for the host to call before anything else.
	DeferStart bool
}

// Rewritten is a module that can be stopped, budgeted and reset.
type Rewritten struct {
	// Binary is the module for an engine. It has no custom sections.
	Binary []byte
	// CompileMemory is Module.CompileMemory of Binary.
	CompileMemory int64
	// Checks is how many places charge fuel, DataSegments how many data
	// segments are left after merging.
	Checks, DataSegments int
	// Memory says what the module's memory may have: its declared minimum,
	// and the maximum that holds for the guest. Binary may declare one page
	// more (Options.ResetRoom). It is nil if the module has none.
	Memory *Memory
	// DeferredStart says that the host has to call ExportStart.
	DeferredStart bool
	// Globals are the module's own mutable globals of the types that a host
	// can read and write, in the order of their indexes. With the memory they
	// are all state there is, if Unrestorable is empty. ExportFuel and
	// ExportRefused are not among them.
	Globals []SavedGlobal
	// Unrestorable says what a host cannot put back after a call, sorted;
	// such a module needs a fresh instance for each.
	Unrestorable []string
}

// SavedGlobal is a mutable global and the name it is exported under.
type SavedGlobal struct {
	Export string
	Type   ValueType
}

// Restorable reports whether memory and Globals are the whole state that a call
// can change.
func (r *Rewritten) Restorable() bool { return len(r.Unrestorable) == 0 }

// rewriter rewrites one module. It decodes every body a second time, with the
// parser's own estimate of what compiling takes, now of the metered body.
type rewriter struct {
	parser // over the original; its module is a copy that charge may write to

	options Options
	regions regions
	facts   facts
	helpers helpers
	// leaves gives for each function that is charged where it is called its
	// cost and one, else zero.
	leaves []byte
	// called says for each function whether something else than a call by its
	// index may call it: the host, or who has a reference to it.
	called  []bool
	patches []patch // of the body being rewritten
	calls   bool    // there are some in it
	checks  int

	content []byte // of the section being written
	out     []byte
}

// patch replaces bytes[pos:end] by a function index, with an opcode in front if
// call is set.
type patch struct {
	pos, end int
	index    uint32
	call     bool
}

// Rewrite meters a module for an engine: see the package's documentation for
// what is charged when, and [Rewritten] for the rest. It changes nothing of what
// the module computes. It refuses, with an [*Error], a module that uses reserved
// names, begins above a limit of the options, or would take too much work to
// compile.
func (m *Module) Rewrite(o Options) (*Rewritten, error) {
	if err := m.checkReserved(); err != nil {
		return nil, err
	}
	if err := m.checkMinima(o); err != nil {
		return nil, err
	}
	estimated := *m
	estimated.CompileMemory = 0
	w := &rewriter{
		parser:  parser{reader: reader{b: m.bytes, end: len(m.bytes), function: -1}, m: &estimated, dataCount: m.DataSegments},
		options: o,
		out:     make([]byte, 0, len(m.bytes)+len(m.bytes)/8+1024),
	}
	w.leaves, w.called = make([]byte, len(m.Functions)), make([]bool, len(m.Functions))
	w.helpers.init(m)
	w.facts.declared(m)
	r := &Rewritten{DeferredStart: o.DeferStart && m.Start != nil, Memory: m.memoryWithin(o)}
	var start uint32
	if r.DeferredStart {
		start = w.helpers.start(*m.Start)
	}

	// The code says which helpers there are, and whether the data segments may
	// be merged; the globals and the elements say which functions are referred
	// to. So these are done before all that stands in front of them.
	globals, elements := w.globals(), w.elements()
	code := w.bodies()
	data, segments := w.data()
	if w.err != nil {
		return nil, w.err
	}
	r.Globals = m.savedGlobals()
	r.Checks, r.DataSegments = w.checks, segments
	r.Unrestorable = w.facts.reasons()

	w.out = append(w.out, m.bytes[:headerSize]...)
	w.writeTypes()
	w.writeImports()
	w.writeFunctions()
	w.writeTables()
	w.writeMemory(r.Memory)
	w.write(sectionGlobal, globals)
	w.writeExports(r, start)
	w.writeStart()
	if len(elements) > 0 {
		w.write(sectionElement, elements)
	}
	if w.facts.dataUsed && segments > 0 {
		w.content = binary.AppendUvarint(w.content[:0], uint64(segments))
		w.write(sectionDataCount, w.content)
	}
	count := binary.AppendUvarint(nil, uint64(len(m.Functions)-m.imported+len(w.helpers.list)))
	w.write(sectionCode, count, code)
	if segments > 0 {
		w.write(sectionData, data)
	}
	if w.err != nil {
		return nil, w.err
	}
	r.Binary, r.CompileMemory = w.out, estimated.CompileMemory
	return r, nil
}

// checkMinima refuses a module that begins above the operator's limits.
func (m *Module) checkMinima(o Options) error {
	refuse := func(section, what string, limit, got uint32) error {
		e := &reader{section: section, function: -1}
		e.over(0, what, int(limit), int64(got))
		return e.err
	}
	if m.Memory != nil && m.Memory.Min > o.MemoryPages {
		return refuse("memory", "pages of memory to begin with", o.MemoryPages, m.Memory.Min)
	}
	for _, t := range m.Tables {
		if t.Min > o.TableElements {
			return refuse("table", "elements of a table to begin with", o.TableElements, t.Min)
		}
	}
	return nil
}

// memoryWithin gives the memory as the operator's limit leaves it.
func (m *Module) memoryWithin(o Options) *Memory {
	if m.Memory == nil {
		return nil
	}
	memory := *m.Memory
	memory.Limits = memory.Limits.within(min(o.MemoryPages, MaxPages))
	return &memory
}

// within gives bounds that have a maximum of at most limit.
func (l Limits) within(limit uint32) Limits {
	if !l.HasMax || l.Max > limit {
		l.Max, l.HasMax = limit, true
	}
	return l
}

// savedGlobals names the globals that a host saves and restores.
func (m *Module) savedGlobals() []SavedGlobal {
	var saved []SavedGlobal
	for i, g := range m.Globals {
		if g.Mutable && !g.Imported && g.Type.isNumber() {
			saved = append(saved, SavedGlobal{Export: exportGlobal + strconv.Itoa(i), Type: g.Type})
		}
	}
	return saved
}

// shifted gives an original function's index in the output, where the host's
// import has been put behind the others.
func (w *rewriter) shifted(i uint32) uint32 {
	if i >= uint32(w.m.imported) {
		return i + 1
	}
	return i
}

// referred is shifted for a reference.
func (w *rewriter) referred(i uint32) uint32 {
	w.called[i] = true
	return w.shifted(i)
}

// write writes a section whose contents come in parts.
func (w *rewriter) write(id byte, content ...[]byte) {
	size := 0
	for _, part := range content {
		size += len(part)
	}
	w.out = binary.AppendUvarint(append(w.out, id), uint64(size))
	for _, part := range content {
		w.out = append(w.out, part...)
	}
}

// enter goes to the contents of an original section and reports whether the
// module has it.
func (w *rewriter) enter(id byte) bool {
	i := slices.IndexFunc(w.m.sections, func(s section) bool { return s.id == id })
	if i < 0 {
		return false
	}
	s := w.m.sections[i]
	w.section = sectionSpecs[id].name
	w.pos, w.end, w.part = s.start+1, s.end, true
	w.u32("the size of a section")
	return true
}

// extended begins a section that holds the entries of the original one, as they
// are, and more of them.
func (w *rewriter) extended(id byte, more int) []byte {
	n := uint32(0)
	var entries []byte
	if w.enter(id) {
		n = w.u32("a number of entries")
		entries = w.b[w.pos:w.end]
	}
	w.content = binary.AppendUvarint(w.content[:0], uint64(n)+uint64(more))
	return append(w.content, entries...)
}

func (w *rewriter) writeTypes() {
	c := w.extended(sectionType, len(helperTypes))
	for _, t := range helperTypes {
		c = appendFuncType(c, t)
	}
	w.write(sectionType, c)
	w.content = c
}

func (w *rewriter) writeImports() {
	c := w.extended(sectionImport, 1)
	c = appendName(appendName(c, ImportModule), ImportName)
	c = binary.AppendUvarint(append(c, byte(KindFunc)), uint64(w.helpers.typeIndex(typeExhausted)))
	w.write(sectionImport, c)
	w.content = c
}

func (w *rewriter) writeFunctions() {
	c := w.extended(sectionFunction, len(w.helpers.list))
	for _, h := range w.helpers.list {
		c = binary.AppendUvarint(c, uint64(w.helpers.typeIndex(h.typ)))
	}
	w.write(sectionFunction, c)
	w.content = c
}

func (w *rewriter) writeTables() {
	c := w.content[:0]
	n := 0
	for _, t := range w.m.Tables {
		if !t.Imported {
			n++
			c = appendLimits(append(c, byte(t.Element)), t.Limits.within(w.options.TableElements))
		}
	}
	if n > 0 {
		w.write(sectionTable, binary.AppendUvarint(nil, uint64(n)), c)
	}
	w.content = c
}

func (w *rewriter) writeMemory(m *Memory) {
	if m == nil || m.Imported {
		return
	}
	l := m.Limits
	if w.options.ResetRoom && l.Max < MaxPages {
		l.Max++
	}
	w.write(sectionMemory, appendLimits([]byte{1}, l))
}

// globals gives the contents of the global section.
func (w *rewriter) globals() []byte {
	n := uint32(0)
	if w.enter(sectionGlobal) {
		n = w.u32("a number of entries")
	}
	c := binary.AppendUvarint(nil, uint64(n)+2)
	for ; n > 0 && w.err == nil; n-- {
		c = append(c, w.bytes(2, "a global")...)
		c = w.constant(c)
	}
	c = append(c, byte(I64), 1, byte(opI64Const), 0, byte(opEnd))    // the fuel
	return append(c, byte(I32), 1, byte(opI32Const), 0, byte(opEnd)) // what was refused
}

// constant copies a constant expression.
func (w *rewriter) constant(c []byte) []byte {
	in := &w.code
	for {
		w.next(in)
		if w.err != nil {
			return c
		}
		if in.op == opRefFunc {
			c = binary.AppendUvarint(append(c, byte(opRefFunc)), uint64(w.referred(in.index)))
		} else {
			c = append(c, w.b[in.start:in.end]...)
		}
		if in.op == opEnd {
			return c
		}
	}
}

func (w *rewriter) writeExports(r *Rewritten, start uint32) {
	n := len(w.m.Exports) + len(r.Globals) + 2
	if r.DeferredStart {
		n++
	}
	c := binary.AppendUvarint(w.content[:0], uint64(n))
	add := func(name string, kind Kind, index uint32) {
		c = binary.AppendUvarint(append(appendName(c, name), byte(kind)), uint64(index))
	}
	for _, e := range w.m.Exports {
		if e.Kind == KindFunc {
			e.Index = w.shifted(e.Index)
		}
		add(e.Name, e.Kind, e.Index)
	}
	if r.DeferredStart {
		add(ExportStart, KindFunc, start)
	}
	saved := r.Globals
	for i, g := range w.m.Globals {
		if g.Mutable && !g.Imported && g.Type.isNumber() {
			add(saved[0].Export, KindGlobal, uint32(i))
			saved = saved[1:]
		}
	}
	add(ExportFuel, KindGlobal, w.helpers.fuel)
	add(ExportRefused, KindGlobal, w.helpers.refused)
	w.write(sectionExport, c)
	w.content = c
}

func (w *rewriter) writeStart() {
	if w.m.Start == nil || w.options.DeferStart {
		return
	}
	w.write(sectionStart, binary.AppendUvarint(nil, uint64(w.shifted(*w.m.Start))))
}

// elements gives the contents of the element section.
func (w *rewriter) elements() []byte {
	if !w.enter(sectionElement) {
		return nil
	}
	n := w.u32("a number of entries")
	c := binary.AppendUvarint(nil, uint64(n))
	for ; n > 0 && w.err == nil; n-- {
		c = w.elementSegment(c)
	}
	return c
}

// elementSegment copies an element segment.
func (w *rewriter) elementSegment(c []byte) []byte {
	flags := w.u32("the flags of an element segment")
	c = binary.AppendUvarint(c, uint64(flags))
	if flags&elementInactive == 0 {
		if flags&elementExplicit != 0 {
			c = binary.AppendUvarint(c, uint64(w.u32("an index")))
		}
		c = w.constant(c)
	}
	if flags&(elementInactive|elementExplicit) != 0 {
		c = append(c, w.byte("the kind of an element segment"))
	}
	n := w.u32("a number of elements")
	c = binary.AppendUvarint(c, uint64(n))
	for ; n > 0 && w.err == nil; n-- {
		if flags&elementExpressions != 0 {
			c = w.constant(c)
		} else {
			c = binary.AppendUvarint(c, uint64(w.referred(w.u32("an index"))))
		}
	}
	return c
}
