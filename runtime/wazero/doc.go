// Package wazero is the default engine of package runtime: wazero, in pure Go.
// It compiles modules to machine code on amd64 and arm64 and interprets them
// elsewhere, or where it is told to.
//
// It adapts and decides nothing: limits, grants and what a module may import
// are the runtime's, and guests stop themselves. What it adds to wazero is the
// memory of package memory, which is bounded for each instance and can be put
// back, and the handing over of code that is kept (keep.go).
//
// # Memory that shrinks
//
// wazero takes memory from an allocator and only ever asks it for more. To put a
// memory back that has grown, and to exchange the one that an instance was
// filled with for its image, the engine grows by a page and has the allocator
// answer with another size or place. wazero takes what it is given, which is
// written down nowhere: so it is tried when the engine is made ([New]), on
// failure of which every call gets a fresh instance, and checked each time, on
// failure of which the instance is thrown away. It needs a declared maximum
// above the size: package meter sees to that.
//
// # Stacks that do not move
//
// Compiled functions begin with a stack of 10 KB, which wazero doubles by copying it
// as a guest recurses, up to 84 MB. Nothing interrupts that, and a deep recursion was
// seen to hold up the host's collector for 111 ms. There is no option for it. So on
// Linux the functions of an instance are given one stack of 48 MiB to begin with, a
// reservation of which only what is touched takes memory, by setting the three fields
// of wazero's that say where it is. Whether they are there, and mean that, is looked at
// and tried when the engine is made, and looked at again for each function; where it is
// not so, and on other systems, stacks grow as wazero has it.
//
// # Limits of wazero that show through
//
//   - CompileModule ignores its context.
//   - The stack ends at 48 MiB of frames with the compiler, and at 2,000
//     calls deep with the interpreter; a Go guest takes seconds to get to the
//     former, so its endless recursion ends by the deadline.
//   - The tables of an instance cannot be put back.
//   - It takes compiled code from a folder only, under names that it makes up, and
//     believes what it finds there but for a checksum. So a process has a folder
//     of its own for that, and what is put there has been verified by whoever
//     keeps it.
package wazero
