// Package memory is the linear memory of guests: it holds one instance's memory
// within its limit, freezes the state of one into an [Image], and puts a memory
// back to what an image holds after every call (sandbox.md, B).
//
// It knows nothing of modules and engines. An engine adapts a [Memory] to its
// own interface: it asks [Memory.Resize] for room, and holds the memory with
// [Memory.Enter] while guest code runs in it. For an engine that insists on
// memory of its own there is [Foreign], which accounts for that and puts it back.
//
// # How memory is put back
//
// Where the system offers it (Linux), a memory is a reserved range of addresses
// that never moves, and an image is a sealed file in memory, mapped privately
// over the memories that begin as it: pages are shared until a guest writes to
// them. What a call wrote is then found by asking the kernel which pages have
// become private (the ioctl PAGEMAP_SCAN of Linux 6.7, or what earlier kernels
// say in /proc/self/pagemap, which takes longer for large memories), and copied
// back: the way [PageScan]. Where the kernel does not tell, all pages are
// compared with the image and copied where they differ: [FullCopy]. On other
// systems memory is plain Go memory, with the same comparison. [Best] tests at
// first use what works here.
//
// # Accounting
//
// None of this memory is seen by GOMEMLIMIT. An [Account] bounds it: every
// memory is charged with the size that its guest has, every image with its own,
// whether or not the pages have ever been touched or are shared. What else there
// is of a guest's, such as its stack, is charged by a [Charge].
package memory
