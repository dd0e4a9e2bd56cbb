package memory

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"
)

// newSpace gives a mapping where mappings work, and plain Go memory where they
// do not and the way does not need them.
func newSpace(limit uint64, way Way) (space, error) {
	if way == Fresh || way == FullCopy && !mappable() {
		return newHeap(limit), nil
	}
	if way != PageScan {
		return newMapping(limit, nil)
	}
	find := finder()
	if find == nil {
		return nil, errors.New("no page scan on this system")
	}
	return newMapping(limit, find)
}

// foreignSpace is a space over bytes that somebody else has mapped, which it
// does not resize or free. Images are mapped over them if they begin at a page.
func foreignSpace(b []byte, way Way) space {
	if len(b) == 0 || uintptr(unsafe.Pointer(&b[0]))%pageBytes != 0 || way == FullCopy && !mappable() {
		return &heap{bytes: b}
	}
	size := uint64(len(b))
	m := &mapping{base: unsafe.Pointer(&b[0]), reserved: size, committed: size}
	if way == PageScan {
		m.find = finder() // nil, where there is none, compares
	}
	return m
}

// mappable reports whether images can be mapped over memories here, which
// needs files in memory and pages no larger than those that are copied by.
var mappable = sync.OnceValue(func() bool {
	if os.Getpagesize() != pageBytes {
		return false
	}
	m, err := newMapping(pageBytes, nil)
	if err != nil {
		return false
	}
	defer m.free()
	m.resize(pageBytes)[0] = 1
	image, err := m.capture(pageBytes)
	if err != nil {
		return false
	}
	defer image.unmap()
	return m.attach(image) == nil && m.bytes(0, pageBytes)[0] == 1
})

// mapping is a space in a reserved range of addresses, which never moves.
type mapping struct {
	base      unsafe.Pointer
	reserved  uint64 // bytes of addresses
	committed uint64 // readable and writable up to here
	find      find
	restored  int    // since private pages were last given back
	first     uint64 // pages that were private after the first call since
	regions   [64]region
	entries   [1024]byte // of /proc/self/pagemap
}

// find finds the pages of the first size bytes of a mapping that were written
// to since an image was attached or private pages were given back, and calls
// copy for each run of them.
type find func(m *mapping, size uint64, copy func(from, to uint64)) error

func newMapping(limit uint64, find find) (*mapping, error) {
	reserved := max(limit+pageBytes-1, pageBytes) &^ (pageBytes - 1)
	base, err := unix.MmapPtr(-1, 0, nil, uintptr(reserved), unix.PROT_NONE, unix.MAP_PRIVATE|unix.MAP_ANON|unix.MAP_NORESERVE)
	if err != nil {
		return nil, fmt.Errorf("reserving addresses: %w", err)
	}
	return &mapping{base: base, reserved: reserved, find: find}, nil
}

// bytes gives a part of the range; only what is committed may be touched.
func (m *mapping) bytes(from, to uint64) []byte {
	return unsafe.Slice((*byte)(m.base), m.reserved)[from:to:to]
}

func (m *mapping) resize(size uint64) []byte {
	if size > m.reserved {
		return nil
	}
	if size > m.committed {
		if unix.Mprotect(m.bytes(m.committed, size), unix.PROT_READ|unix.PROT_WRITE) != nil {
			return nil
		}
		m.committed = size
	}
	return m.bytes(0, size)
}

// capture copies the bytes into a file in memory, zero pages left out, and
// seals it: nobody can change it any more, this process included.
func (m *mapping) capture(size uint64) (image *Image, err error) {
	file, err := unix.MemfdCreate("weir-image", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			_ = unix.Close(file)
		}
	}()
	if err := unix.Ftruncate(file, int64(size)); err != nil {
		return nil, err
	}
	if err := writeSparse(file, m.bytes(0, size)); err != nil {
		return nil, err
	}
	const seals = unix.F_SEAL_SHRINK | unix.F_SEAL_GROW | unix.F_SEAL_WRITE | unix.F_SEAL_SEAL
	if _, err := unix.FcntlInt(uintptr(file), unix.F_ADD_SEALS, seals); err != nil {
		return nil, err
	}
	image = &Image{file: file}
	if size > 0 {
		if image.data, err = unix.Mmap(file, 0, int(size), unix.PROT_READ, unix.MAP_SHARED); err != nil {
			return nil, err
		}
	}
	data := image.data
	image.unmap = func() {
		if data != nil {
			_ = unix.Munmap(data)
		}
		_ = unix.Close(file)
	}
	return image, nil
}

// writeSparse writes the pages that are not zero, in runs.
func writeSparse(file int, b []byte) error {
	zero := make([]byte, pageBytes)
	run := 0 // where the pages begin that are to be written
	write := func(end int) error {
		for at := run; at < end; {
			n, err := unix.Pwrite(file, b[at:end], int64(at))
			if err != nil && !errors.Is(err, unix.EINTR) {
				return err
			}
			at += max(n, 0)
		}
		return nil
	}
	for at := 0; at < len(b); at += pageBytes {
		if string(b[at:min(at+pageBytes, len(b))]) == string(zero[:min(pageBytes, len(b)-at)]) {
			if err := write(at); err != nil {
				return err
			}
			run = at + pageBytes
		}
	}
	return write(len(b))
}

// attach maps the image over the beginning of the range: pages are read from it
// until they are written to, and private from then on.
func (m *mapping) attach(image *Image) error {
	if image.file < 0 || image.size > m.reserved {
		return errors.New("not an image that can be mapped here")
	}
	size := uint64(len(image.data))
	if size == 0 {
		return nil
	}
	if _, err := unix.MmapPtr(image.file, 0, m.base, uintptr(size), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_FIXED); err != nil {
		return err
	}
	m.committed = max(m.committed, size)
	return nil
}

// Pages that were once written stay private, and each scan finds them again, to be
// copied. So that one call which wrote a lot does not slow down all later ones, all
// are given back now and then: after some calls if the calls have written more pages
// together than the first of them had, after many calls anyway, since that one may have been
// the large one, and at once when there are very many. A page that is given back costs
// the next call that writes to it a fault, which is as much as some copies, and giving
// back interrupts the other processors.
const (
	morePages      = 8 // worth giving back
	restoresAfter  = 16
	restoresAtMost = 256
	tooManyPages   = 16 * 1024 / 4 // 16 MiB
)

func (m *mapping) restore(image *Image, high uint64) error {
	size := uint64(len(image.data))
	if high > size {
		if err := unix.Madvise(m.bytes(size, high), unix.MADV_DONTNEED); err != nil {
			return err
		}
	}
	if m.find == nil {
		copyDifferent(m.bytes(0, size), image.data)
		return nil
	}
	pages := uint64(0)
	if err := m.find(m, size, func(from, to uint64) {
		if pages += (to - from) / pageBytes; pages <= tooManyPages { // else all are given back
			copy(m.bytes(from, to), image.data[from:])
		}
	}); err != nil {
		return err
	}
	if m.restored++; m.restored == 1 {
		m.first = pages
	}
	more := m.restored >= restoresAfter && pages > m.first+morePages
	if pages > tooManyPages || more || m.restored >= restoresAtMost {
		m.restored = 0
		return unix.Madvise(m.bytes(0, size), unix.MADV_DONTNEED)
	}
	return nil
}

func (m *mapping) free() { _ = unix.MunmapPtr(m.base, uintptr(m.reserved)) }

// region and scanArgument are struct page_region and struct pm_scan_arg of
// linux/fs.h.
type region struct{ start, end, _ uint64 } // the last one is its categories

type scanArgument struct {
	size, flags, start, end, walkEnd, vec, vecLen, maxPages uint64
	inverted, mask, anyOf, returned                         uint64
}

const (
	pagemapScan = 0xc0606610 // _IOWR('f', 16, struct pm_scan_arg)

	pageIsFile    = 1 << 2
	pageIsPresent = 1 << 3
	pageIsSwapped = 1 << 4
)

// pagemap is /proc/self/pagemap, opened once and kept.
var pagemap = sync.OnceValues(func() (int, error) {
	return unix.Open("/proc/self/pagemap", unix.O_RDONLY|unix.O_CLOEXEC, 0)
})

// finder is the best way to find written pages that works here, or nil. What
// pages of the mapping are the process's own is known to every kernel; asking
// for just them is possible since Linux 6.7.
var finder = sync.OnceValue(func() find {
	for _, find := range []find{scanPages, readPagemap} {
		if findsWritten(find) {
			return find
		}
	}
	return nil
})

// findsWritten tries whether exactly the written pages of an image are found.
func findsWritten(find find) bool {
	if !mappable() {
		return false
	}
	const size = 16 * pageBytes
	m, err := newMapping(size, find)
	if err != nil {
		return false
	}
	defer m.free()
	b := m.resize(size)
	b[0], b[size-1] = 1, 1
	image, err := m.capture(size)
	if err != nil {
		return false
	}
	defer image.unmap()
	if m.attach(image) != nil {
		return false
	}
	b[5*pageBytes], b[6*pageBytes] = 1, 1
	if b[size-1] != 1 { // read, and not written
		return false
	}
	var found []uint64
	err = find(m, size, func(from, to uint64) { found = append(found, from, to) })
	return err == nil && len(found) == 2 && found[0] == 5*pageBytes && found[1] == 7*pageBytes
}

// scanPages asks the kernel for the pages of the private mapping that are the
// process's own: in memory or swapped out, and not of the file.
func scanPages(m *mapping, size uint64, copy func(from, to uint64)) error {
	fd, err := pagemap()
	if err != nil {
		return err
	}
	base := uint64(uintptr(m.base))
	end := base + size
	for at := base; at < end; {
		a := scanArgument{
			size: uint64(unsafe.Sizeof(scanArgument{})), start: at, end: end,
			vec: uint64(uintptr(unsafe.Pointer(&m.regions))), vecLen: uint64(len(m.regions)),
			inverted: pageIsFile, mask: pageIsFile, anyOf: pageIsPresent | pageIsSwapped, returned: pageIsPresent,
		}
		n, _, e := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), pagemapScan, uintptr(unsafe.Pointer(&a)))
		if e == unix.EINTR {
			continue
		}
		if e != 0 {
			return fmt.Errorf("PAGEMAP_SCAN: %w", e)
		}
		if int(n) > len(m.regions) || a.walkEnd <= at {
			return errors.New("PAGEMAP_SCAN answers nonsense")
		}
		for _, r := range m.regions[:n] {
			copy(r.start-base, r.end-base)
		}
		at = a.walkEnd
	}
	runtime.KeepAlive(m)
	return nil
}

// readPagemap reads the same of each page, 8 bytes for each.
func readPagemap(m *mapping, size uint64, copy func(from, to uint64)) error {
	const (
		entryBytes             = 8
		present, swapped, file = 1 << 63, 1 << 62, 1 << 61
	)
	fd, err := pagemap()
	if err != nil {
		return err
	}
	pages, first := size/pageBytes, uint64(uintptr(m.base))/pageBytes
	from, open := uint64(0), false // a run of written pages
	for at := uint64(0); at < pages; {
		b := m.entries[:min(uint64(len(m.entries)), (pages-at)*entryBytes)]
		n, err := unix.Pread(fd, b, int64((first+at)*entryBytes))
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil || n < entryBytes {
			return fmt.Errorf("/proc/self/pagemap gives %d bytes: %w", n, errors.Join(err, io.ErrUnexpectedEOF))
		}
		for b = b[:n/entryBytes*entryBytes]; len(b) > 0; b = b[entryBytes:] {
			entry := binary.LittleEndian.Uint64(b)
			written := entry&(present|swapped) != 0 && entry&file == 0
			if written && !open {
				from = at
			} else if !written && open {
				copy(from*pageBytes, at*pageBytes)
			}
			open = written
			at++
		}
	}
	if open {
		copy(from*pageBytes, size)
	}
	return nil
}
