// Package cache keeps on disk what loading a module has made: the metered
// binary and the engine's machine code. It knows nothing of either; an entry is
// some byte strings under a key that names all they depend on.
//
// Machine code that comes back from a disk runs in this process, outside of the
// sandbox. So an entry is read once, into memory, and verified there before
// anybody looks at it: an HMAC by a random secret of the user's, kept beside the
// entries with mode 0600, in a folder of mode 0700. Entries that were cut off,
// bent, exchanged, put there by others, or made under another secret are removed
// and made anew; nothing of this is an error.
//
// What this does not protect against: whoever runs with the same uid, or as
// root, can read the secret and forge an entry. They can as well exchange the
// program or attach to its process, so no door is opened that was closed. Nor
// does it protect against an older entry of the same key, which is as good as a
// newer one.
//
// Any number of processes use one folder. Writes are renames; two processes
// that make the same entry at once both succeed, and one of them stays. The
// entries that were not used for the longest time go when all together pass
// [Options].MaxBytes.
//
//	c, err := cache.Open(cache.Options{Dir: dir})
//	r := runtime.New(engine, runtime.WithCache(c))
package cache
