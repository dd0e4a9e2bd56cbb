package meter

// The fixed limits of a module (abi.md "Load"). They are not configurable: an
// engine never sees a module that passes one of them. Each is inclusive: a
// module that reaches a limit exactly is accepted.
const (
	// MaxItems bounds each of the types, imports, functions, tables, globals,
	// exports, element segments, data segments and custom sections of a
	// module. Functions and globals count imported ones as well.
	MaxItems = 100_000

	// MaxLocals bounds the declared locals of one function; its parameters do
	// not count.
	MaxLocals = 50_000

	// MaxBody bounds the encoded size of one function body in bytes, its local
	// declarations included.
	MaxBody = 1 << 20

	// MaxBrTable bounds the targets of one br_table; the default target does
	// not count.
	MaxBrTable = 65_536

	// MaxNesting bounds how deep blocks, loops and ifs nest in one function.
	MaxNesting = 1_000

	// MaxParams and MaxResults bound the parameters and the results of one
	// function type.
	MaxParams  = 1_000
	MaxResults = 1_000

	// MaxPages is the most pages of 64 KiB that a linear memory can declare:
	// the format's own bound, 4 GiB. What a guest may really have is decided
	// by the operator's limit, which is far lower.
	MaxPages = 65_536
)

// Limits on sums. abi.md bounds each part; these bound what the parts add up
// to where an engine allocates far more for them than they take in the file.
const (
	// MaxAllLocals bounds the declared locals of all functions together. A
	// local takes no bytes of its own (a declaration names a count), so that
	// 100,000 functions of 50,000 locals fit in 1 MB and would ask an engine
	// for 40 GB.
	MaxAllLocals = 5_000_000

	// MaxElements bounds the entries of all element segments together. One
	// takes a byte in the file and some 40 bytes in an engine.
	MaxElements = 1_000_000

	// MaxConstStack bounds the values that a constant expression holds at
	// once. One takes two bytes in the file and up to 48 in an engine.
	MaxConstStack = 1_000

	// MaxWork bounds the estimated work to compile one function body, beyond
	// what goes with its size, that takes memory: the values that calls and
	// branches pass, and the locals that are carried through places where paths
	// meet. A body of 2 KB can otherwise take 340 MB to compile.
	MaxWork = 2 << 20

	// MaxAllWork bounds the time of that for all bodies, of walking back over
	// their blocks, and of looking functions up among the exports: half a
	// microsecond a unit. A body of 540 KB can otherwise take ten minutes. It is
	// for the largest modules. Others are allowed 8 Mi units, some four seconds,
	// and one more for each two bytes, which is what modules of the Go compiler
	// have.
	MaxAllWork = 16 << 20
)

// What of MaxAllWork a module may have, whatever its size, and for its size.
const (
	mostWorkOfAny      = 8 << 20
	bytesPerUnitOfWork = 2
)

// What compiling takes on the default engine, in bytes of memory: for a byte of
// a function body, and for a unit of work beyond it.
const (
	memoryPerByte = 700
	memoryPerUnit = 350
)
