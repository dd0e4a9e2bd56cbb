package store

// Limit bounds entries and their bytes. An entry counts with the bytes of its
// key and its value and 512 more, which is what it costs to keep.
type Limit struct {
	Entries int
	Bytes   int64
}

// Limits bound a [Memory]. A member that is 0 means its default.
type Limits struct {
	// Owner bounds one space, except in the scope [Module], where a space is all
	// that a file has: one caller does not use up what the others need. By
	// default 1,000 entries and 1 MiB.
	Owner Limit
	// File bounds all spaces of a file of a host; by default 50,000 entries and
	// 32 MiB.
	File Limit
	// Total bounds the store; by default 100,000 entries and 64 MiB.
	Total Limit
}

func (l Limits) orDefaults() Limits {
	return Limits{
		Owner: l.Owner.or(Limit{1_000, 1 << 20}),
		File:  l.File.or(Limit{50_000, 32 << 20}),
		Total: l.Total.or(Limit{100_000, 64 << 20}),
	}
}

func (l Limit) or(d Limit) Limit {
	if l.Entries <= 0 {
		l.Entries = d.Entries
	}
	if l.Bytes <= 0 {
		l.Bytes = d.Bytes
	}
	return l
}

// usage is what counts against a [Limit].
type usage struct {
	entries int
	bytes   int64
}

// fits reports whether there is room for more. What takes no more than it did
// always fits.
func (u usage) fits(more usage, l Limit) bool {
	return (more.entries <= 0 || u.entries+more.entries <= l.Entries) && (more.bytes <= 0 || u.bytes+more.bytes <= l.Bytes)
}

func (u *usage) add(more usage) {
	u.entries += more.entries
	u.bytes += more.bytes
}

const (
	// entryBytes is what an entry costs besides its key and value: its place in
	// two maps and a heap, and a space that may exist for its sake only.
	entryBytes = 512
	// counterBytes is the longest counter. No value counts for less, so that
	// adding to a counter that exists never wants for room.
	counterBytes = len("-9223372036854775808")
)

func costOf(key string, value []byte) int64 {
	return int64(entryBytes + len(key) + max(len(value), counterBytes))
}
