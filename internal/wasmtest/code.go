package wasmtest

import "slices"

// Instructions without operands.
var (
	Unreachable = []byte{0x00}
	Return      = []byte{0x0f}
	Drop        = []byte{0x1a}
	MemorySize  = []byte{0x3f, 0}
	MemoryGrow  = []byte{0x40, 0}
	I32Eqz      = []byte{0x45}
	I32Eq       = []byte{0x46}
	I32Ne       = []byte{0x47}
	I32Add      = []byte{0x6a}
	I32Sub      = []byte{0x6b}
	I32DivU     = []byte{0x6e}
	I64Add      = []byte{0x7c}
	I64Ne       = []byte{0x52}
	I64LtU      = []byte{0x54}
	RefNullFunc = []byte{0xd0, 0x70}
	RefIsNull   = []byte{0xd1}
	TableSize0  = []byte{0xfc, 16, 0}
	TableGrow0  = []byte{0xfc, 15, 0}
	TableGet0   = []byte{0x25, 0}
	TableSet0   = []byte{0x26, 0}
)

// I32 is i32.const.
func I32(n int32) []byte { return append([]byte{0x41}, Int(int64(n))...) }

// I64 is i64.const.
func I64(n int64) []byte { return append([]byte{0x42}, Int(n)...) }

// Call calls a function.
func Call(f Func) []byte { return append([]byte{0x10}, Uint(uint64(f))...) }

// ReturnCall calls a function in tail position.
func ReturnCall(f Func) []byte { return append([]byte{0x12}, Uint(uint64(f))...) }

// CallIndirect calls the function in table 0 that the stack names, which must be
// of the type with that index.
func CallIndirect(typ uint32) []byte { return append(append([]byte{0x11}, Uint(uint64(typ))...), 0) }

// ReturnCallIndirect does so in tail position.
func ReturnCallIndirect(typ uint32) []byte {
	return append(append([]byte{0x13}, Uint(uint64(typ))...), 0)
}

// RefFunc is a reference to a function, which an element segment must name too.
func RefFunc(f Func) []byte { return append([]byte{0xd2}, Uint(uint64(f))...) }

// Get is local.get.
func Get(local uint32) []byte { return append([]byte{0x20}, Uint(uint64(local))...) }

// Set is local.set.
func Set(local uint32) []byte { return append([]byte{0x21}, Uint(uint64(local))...) }

// GlobalGet is global.get.
func GlobalGet(global uint32) []byte { return append([]byte{0x23}, Uint(uint64(global))...) }

// GlobalSet is global.set.
func GlobalSet(global uint32) []byte { return append([]byte{0x24}, Uint(uint64(global))...) }

// Load is i32.load at a fixed address plus the one on the stack.
func Load(offset uint32) []byte { return append([]byte{0x28, 0}, Uint(uint64(offset))...) }

// Load64 is i64.load likewise.
func Load64(offset uint32) []byte { return append([]byte{0x29, 0}, Uint(uint64(offset))...) }

// Load8 is i32.load8_u likewise.
func Load8(offset uint32) []byte { return append([]byte{0x2d, 0}, Uint(uint64(offset))...) }

// Store is i32.store likewise.
func Store(offset uint32) []byte { return append([]byte{0x36, 0}, Uint(uint64(offset))...) }

// Store64 is i64.store likewise.
func Store64(offset uint32) []byte { return append([]byte{0x37, 0}, Uint(uint64(offset))...) }

// Store8 is i32.store8 likewise.
func Store8(offset uint32) []byte { return append([]byte{0x3a, 0}, Uint(uint64(offset))...) }

// Br and BrIf branch out of so many enclosing blocks.
func Br(depth uint32) []byte { return append([]byte{0x0c}, Uint(uint64(depth))...) }

// BrIf branches when the value on the stack is not 0.
func BrIf(depth uint32) []byte { return append([]byte{0x0d}, Uint(uint64(depth))...) }

// BrTable branches by the value on the stack: out of as many blocks as the list
// says at its place, or else out of otherwise many.
func BrTable(depths []uint32, otherwise uint32) []byte {
	b := append([]byte{0x0e}, Uint(uint64(len(depths)))...)
	for _, depth := range depths {
		b = append(b, Uint(uint64(depth))...)
	}
	return append(b, Uint(uint64(otherwise))...)
}

// Loop is a loop without results.
func Loop(body ...[]byte) []byte { return wrap(0x03, body) }

// Block is a block without results.
func Block(body ...[]byte) []byte { return wrap(0x02, body) }

// If runs its body when the value on the stack is not 0.
func If(body ...[]byte) []byte { return wrap(0x04, body) }

// IfElse runs the one or the other.
func IfElse(then, otherwise []byte) []byte { return wrap(0x04, [][]byte{then, {0x05}, otherwise}) }

func wrap(opcode byte, body [][]byte) []byte {
	return slices.Concat([]byte{opcode, 0x40}, slices.Concat(body...), []byte{0x0b})
}

// Seq joins instructions.
func Seq(code ...[]byte) []byte { return slices.Concat(code...) }
