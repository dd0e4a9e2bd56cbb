package meter

import "bytes"

// headerSize is the magic and the version.
const headerSize = 8

var (
	magic     = []byte("\x00asm")
	version   = []byte{1, 0, 0, 0}
	component = []byte{0x0d, 0, 1, 0} // version 13, layer 1
)

// The section ids of the binary format.
const (
	sectionCustom byte = iota
	sectionType
	sectionImport
	sectionFunction
	sectionTable
	sectionMemory
	sectionGlobal
	sectionExport
	sectionStart
	sectionElement
	sectionCode
	sectionData
	sectionDataCount
)

// sectionSpec says how a section is called, in which order it comes (custom
// sections, at zero, come anywhere and as often as they like) and how its
// contents are read.
type sectionSpec struct {
	name  string
	order int
	read  func(*parser)
}

var sectionSpecs = [...]sectionSpec{
	sectionCustom:    {"custom", 0, (*parser).customSection},
	sectionType:      {"type", 1, (*parser).typeSection},
	sectionImport:    {"import", 2, (*parser).importSection},
	sectionFunction:  {"function", 3, (*parser).functionSection},
	sectionTable:     {"table", 4, (*parser).tableSection},
	sectionMemory:    {"memory", 5, (*parser).memorySection},
	sectionGlobal:    {"global", 6, (*parser).globalSection},
	sectionExport:    {"export", 7, (*parser).exportSection},
	sectionStart:     {"start", 8, (*parser).startSection},
	sectionElement:   {"element", 9, (*parser).elementSection},
	sectionDataCount: {"data count", 10, (*parser).dataCountSection},
	sectionCode:      {"code", 11, (*parser).codeSection},
	sectionData:      {"data", 12, (*parser).dataSection},
}

// foreignSections are the sections of features that are not accepted.
var foreignSections = map[byte]string{13: featureExceptions, 14: featureStringref}

// parser reads one module.
type parser struct {
	reader
	m *Module

	order     int // of the last section that was not custom
	dataCount int // declared by the data count section, -1 without
	bodies    int // in the code section
	locals    int // of all functions

	code    instruction // reused by every body
	stack   []ValueType // reused by every constant expression
	frames  []frame     // of the body being read, the function itself first
	work    work        // of the body being read
	allWork uint64      // units, of all bodies
}

// Parse reads a module and refuses, with an [*Error], whatever is not a module
// of the accepted features within the fixed limits. It may be called by several
// goroutines. b must not be changed while the module is in use.
func Parse(b []byte) (*Module, error) {
	p := &parser{
		reader:    reader{b: b, end: len(b), section: "header", function: -1},
		m:         &Module{bytes: b},
		dataCount: -1,
	}
	p.header()
	for p.err == nil && p.pos < len(b) {
		p.nextSection()
	}
	p.finish()
	if p.err != nil {
		return nil, p.err
	}
	return p.m, nil
}

func (p *parser) header() {
	head := p.b[:min(headerSize, len(p.b))]
	switch n := min(len(magic), len(head)); {
	case !bytes.Equal(head[:n], magic[:n]):
		p.fail(ErrNotWasm, 0, `the file does not begin with "\0asm"`)
	case len(head) < headerSize:
		p.fail(ErrTruncated, len(head), "the file has %d bytes, the header alone takes %d", len(head), headerSize)
	case bytes.Equal(head[4:], component):
		p.fail(ErrComponent, 4, "build a core module instead (for WASI: preview 1)")
	case !bytes.Equal(head[4:], version):
		p.fail(ErrMalformed, 4, "unknown version % x of the binary format, only 1 is known", head[4:])
	}
	p.pos = headerSize
}

// nextSection reads one section, which must fill exactly the size it declares.
func (p *parser) nextSection() {
	start := p.pos
	p.section = "section header"
	id := p.byte("a section id")
	if p.err == nil && int(id) >= len(sectionSpecs) {
		if feature := foreignSections[id]; feature != "" {
			p.unsupported(start, feature)
		} else {
			p.fail(ErrMalformed, start, "unknown section id %d", id)
		}
	}
	size := p.u32("the size of a section")
	if p.err != nil {
		return
	}
	spec := &sectionSpecs[id]
	p.section = spec.name
	if uint64(size) > uint64(p.left()) {
		p.fail(ErrTruncated, p.pos, "the section declares %d bytes, the file has %d more", size, p.left())
		return
	}
	if id != sectionCustom {
		switch {
		case spec.order == p.order:
			p.fail(ErrMalformed, start, "the module has two of this section")
		case spec.order < p.order:
			p.fail(ErrMalformed, start, "the section is out of order")
		}
		p.order = spec.order
	}
	p.end, p.part = p.pos+int(size), true
	if spec.read(p); p.err == nil && p.pos != p.end {
		p.fail(ErrMalformed, p.pos, "the contents end %d bytes before the section does", p.end-p.pos)
	}
	p.pos, p.end, p.part = p.end, len(p.b), false
	p.m.sections = append(p.m.sections, section{id: id, start: start, end: p.pos})
}

// finish checks what sections must agree on once all are known.
func (p *parser) finish() {
	p.section = "code"
	if declared := len(p.m.Functions) - p.m.imported; p.bodies != declared {
		p.fail(ErrMalformed, p.pos, "the function section declares %d functions, the code section has %d bodies", declared, p.bodies)
	}
	p.section = "data count"
	if p.dataCount >= 0 && p.dataCount != p.m.DataSegments {
		p.fail(ErrMalformed, p.pos, "%d data segments are declared, the data section has %d", p.dataCount, p.m.DataSegments)
	}
}
