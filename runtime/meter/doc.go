// Package meter reads WebAssembly modules that nobody has checked before. Its
// strict parser stands between a file and the engine: no engine ever sees bytes
// that it has not accepted (abi.md "Load").
//
// Engines are not built to be shown hostile binaries. A module of 18 bytes whose
// type section announces 2^32-1 entries ends a process that compiles it, by
// running out of memory; so do a name section that asks for 96 GB and a function
// with 2^32-1 locals. [Parse] closes that door:
//
//   - It never allocates for a length it has not seen the bytes for, and no more
//     than a constant factor of the file altogether.
//   - It enforces the fixed limits of abi.md, and bounds on what they add up to
//     where a few bytes of the file would have an engine allocate gigabytes or
//     compile for minutes. [Module].CompileMemory says what a compilation is to
//     be charged.
//   - It accepts the MVP with sign extension, saturating conversion,
//     multi-value, bulk memory, reference types, SIMD, extended constant
//     expressions and tail calls, and refuses everything else by its name.
//   - It checks what the format demands: encodings, the order and the sizes of
//     sections, counts that must agree, names, every index against its space,
//     the nesting of blocks, alignments, lanes, and constant expressions with
//     their types.
//
// What it leaves to the engine is the type-checking of the operand stack in
// function bodies, and with it whether a function may be named by ref.func:
// engines do that with care, in bounded memory, and refuse what is wrong. So a
// module that Parse accepts may still be refused by the engine.
//
// [Module.Stripped] gives the bytes to compile: the module without its custom
// sections, which no engine needs and some read carelessly.
//
// The package knows nothing of engines, hosts, grants or interceptors. What an
// import or an export has to be called, and how much memory a guest may have, is
// decided by its caller from what [Module] says.
package meter
