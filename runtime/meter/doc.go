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
// # Rewriting
//
// [Module.Rewrite] makes of an accepted module one that can be stopped, budgeted
// and reset, and that computes the same. It
//
//   - charges fuel for all that runs, and calls the host when there is none left;
//   - lowers the declared maxima of memory and tables to the operator's limits,
//     and notes in a global when growth was refused;
//   - exports the mutable globals, and tells whether they and the memory are all
//     state there is, so that a host can save and restore it;
//   - joins data segments, of which the Go linker emits tens of thousands;
//   - drops custom sections, and on request takes the start function out of
//     instantiation.
//
// What the host has to provide and finds is named by the constants: the import
// [ImportName] of [ImportModule], and the exports [ExportFuel], [ExportRefused],
// [ExportStart] and those of [Rewritten].Globals.
//
// # Fuel
//
// Fuel is a mutable i64 global. Before each call of the guest the host sets it to
// what may be used. The guest subtracts from it and calls the host when it finds
// less than zero, with what is left. The host returns what there is to go on
// with, or ends the call; that is where it looks at the clock. What has been used
// is the sum of what was given less what is left.
//
// What is charged depends on the module and its input alone, not on the engine,
// the machine or how the host slices it:
//
//   - A check charges in advance what the dearest way from it to the next checks
//     costs: the prices of the instructions, as cost.go lists them (one unit for a
//     simple one, more for divisions, calls and the like, nothing for block,
//     loop, else, end and nop), and one unit for each value that a call, a block
//     or a branch passes. A cheaper way may be taken; so it is an upper bound of
//     what runs.
//   - Of that, a check charges at most 1,024 units, and what remains to be done
//     of it after a call at most 128: then comes the next one.
//   - Entering a function is charged one unit for each 8 of its locals.
//   - A function without calls and loops of at most 32 units is charged where it
//     is called, unless it is exported, the start function or referred to by a
//     global or an element segment.
//   - memory.copy, fill and init are charged a unit for each [BytesPerUnit]
//     bytes, and table.copy, fill and init one for each element, before they
//     begin, and tested at once. If the length is a constant of at most 512
//     units it is charged in advance like everything else. What is longer than
//     1 MiB is done in pieces of that, each charged and tested before it begins;
//     one that does not fit traps before anything is written, as ever.
//   - memory.grow and table.grow are charged like memory.fill and table.fill of
//     what they add, but afterwards, and only if they succeed.
//
// Fuel is tested, and the host called if there is none left, at the entry of each
// function that is not charged by its caller, at the head of each loop whether or
// not anything branches to it, wherever more than 1,024 units, or 128 after a call
// has returned, would run without, and with each bulk operation whose length is
// not charged in advance. So between two tests runs no more than that, a bulk
// operation on 1 MiB or on a whole table, and, where calls return one into the
// other, 128 units in each of them.
//
// Code that nothing leads to is neither charged nor tested.
//
// A function whose first loop comes straight after at most 24 units is charged
// for them with every round of the loop instead of by a check of its own.
//
// The package knows nothing of engines, hosts, grants or interceptors. What an
// import or an export has to be called, and how much memory a guest may have, is
// decided by its caller from what [Module] says.
package meter
