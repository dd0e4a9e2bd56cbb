package runtime

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"math"

	"github.com/weir-mcp/weir/abi"
)

// WASI preview 1, as far as a sandbox without files, network and sleep has it
// (abi.md "What a module can reach"). It is written here rather than taken from
// an engine, so that a module sees the same on every engine and every function
// takes bounded time.

// wasiModule is the import module of WASI preview 1.
const wasiModule = "wasi_snapshot_preview1"

// errno is WASI's error code.
type errno = uint64

const (
	errnoSuccess errno = 0
	errnoBadf    errno = 8
	errnoFault   errno = 21
	errnoInval   errno = 28
	errnoNosys   errno = 52
	errnoNotsup  errno = 58
	errnoSpipe   errno = 70
)

// wasiFunc is a function of WASI that returns an errno.
type wasiFunc func(c *call, memory Memory, words []uint64) errno

func wasi(name, params string, f wasiFunc) HostFunc {
	return HostFunc{
		Module: wasiModule, Name: name, Type: signature(params, "i"),
		Call: func(ctx context.Context, memory Memory, words []uint64) error {
			words[0] = f(callOf(ctx), memory, words)
			return nil
		},
	}
}

// wasiStop is a function of WASI that may end the call or needs its context.
func wasiStop(name, params string, f func(ctx context.Context, c *call, memory Memory, words []uint64) (errno, error)) HostFunc {
	return HostFunc{
		Module: wasiModule, Name: name, Type: signature(params, "i"),
		Call: func(ctx context.Context, memory Memory, words []uint64) (err error) {
			words[0], err = f(ctx, callOf(ctx), memory, words)
			return err
		},
	}
}

// noFile answers for functions on descriptors, of which a guest has none but
// stdin, stdout and stderr, and on the paths beneath them.
func noFile(_ *call, _ Memory, words []uint64) errno {
	if isStdio(words[0]) {
		return errnoNotsup
	}
	return errnoBadf
}

func noSuch(*call, Memory, []uint64) errno { return errnoNosys }

func isStdio(fd uint64) bool { return fd <= 2 }

var wasiFuncs = []HostFunc{
	wasi("args_get", "ii", func(c *call, m Memory, w []uint64) errno { return putStrings(m, c.args, w[0], w[1]) }),
	wasi("args_sizes_get", "ii", func(c *call, m Memory, w []uint64) errno { return putSizes(m, c.args, w[0], w[1]) }),
	wasi("environ_get", "ii", func(c *call, m Memory, w []uint64) errno { return putStrings(m, c.m.environ, w[0], w[1]) }),
	wasi("environ_sizes_get", "ii", func(c *call, m Memory, w []uint64) errno { return putSizes(m, c.m.environ, w[0], w[1]) }),
	wasi("clock_res_get", "ii", clockResolution),
	wasi("clock_time_get", "iIi", clockTime),
	wasi("fd_advise", "iIIi", noFile),
	wasi("fd_allocate", "iII", noFile),
	wasi("fd_close", "i", accept),
	wasi("fd_datasync", "i", noFile),
	wasi("fd_fdstat_get", "ii", fdstat),
	wasi("fd_fdstat_set_flags", "ii", accept),
	wasi("fd_fdstat_set_rights", "iII", noFile),
	wasi("fd_filestat_get", "ii", filestat),
	wasi("fd_filestat_set_size", "iI", noFile),
	wasi("fd_filestat_set_times", "iIIi", noFile),
	wasi("fd_pread", "iiiIi", noFile),
	wasi("fd_prestat_get", "ii", noPreopen),
	wasi("fd_prestat_dir_name", "iii", noPreopen),
	wasi("fd_pwrite", "iiiIi", noFile),
	wasi("fd_read", "iiii", fdRead),
	wasi("fd_readdir", "iiiIi", noFile),
	wasi("fd_renumber", "ii", noFile),
	wasi("fd_seek", "iIii", noSeek),
	wasi("fd_sync", "i", noFile),
	wasi("fd_tell", "ii", noSeek),
	wasiStop("fd_write", "iiii", fdWrite),
	wasi("path_create_directory", "iii", noFile),
	wasi("path_filestat_get", "iiiii", noFile),
	wasi("path_filestat_set_times", "iiiiIIi", noFile),
	wasi("path_link", "iiiiiii", noFile),
	wasi("path_open", "iiiiiIIii", noFile),
	wasi("path_readlink", "iiiiii", noFile),
	wasi("path_remove_directory", "iii", noFile),
	wasi("path_rename", "iiiiii", noFile),
	wasi("path_symlink", "iiiii", noSymlink),
	wasi("path_unlink_file", "iii", noFile),
	wasi("poll_oneoff", "iiii", pollOneoff),
	{Module: wasiModule, Name: "proc_exit", Type: signature("i", ""), Call: procExit},
	wasi("proc_raise", "i", noSuch),
	wasiStop("random_get", "ii", randomGet),
	wasi("sched_yield", "", func(*call, Memory, []uint64) errno { return errnoSuccess }),
	wasi("sock_accept", "iii", noFile),
	wasi("sock_recv", "iiiiii", noFile),
	wasi("sock_send", "iiiii", noFile),
	wasi("sock_shutdown", "ii", noFile),
}

func putUint32(m Memory, at uint64, value uint32) bool {
	b, ok := m.Read(uint32(at), 4)
	if ok {
		binary.LittleEndian.PutUint32(b, value)
	}
	return ok
}

func putUint64(m Memory, at uint64, value uint64) errno {
	b, ok := m.Read(uint32(at), 8)
	if !ok {
		return errnoFault
	}
	binary.LittleEndian.PutUint64(b, value)
	return errnoSuccess
}

// putSizes writes how many strings there are and how many bytes they take.
func putSizes(m Memory, list []string, count, size uint64) errno {
	total := 0
	for _, s := range list {
		total += len(s) + 1
	}
	if !putUint32(m, count, uint32(len(list))) || !putUint32(m, size, uint32(total)) {
		return errnoFault
	}
	return errnoSuccess
}

// putStrings writes the strings, each with a NUL, and where each begins.
func putStrings(m Memory, list []string, pointers, to uint64) errno {
	for i, s := range list {
		b, ok := m.Read(uint32(to), uint32(len(s)+1))
		if !ok || !putUint32(m, pointers+4*uint64(i), uint32(to)) {
			return errnoFault
		}
		b[copy(b, s)] = 0
		to += uint64(len(s) + 1)
	}
	return errnoSuccess
}

const (
	clockRealtime  = 0
	clockMonotonic = 1
)

func clockResolution(_ *call, m Memory, w []uint64) errno {
	if w[0] > clockMonotonic {
		return errnoInval
	}
	return putUint64(m, w[1], uint64(clockStep))
}

func clockTime(c *call, m Memory, w []uint64) errno {
	switch w[0] {
	case clockRealtime:
		return putUint64(m, w[2], c.clock.wall())
	case clockMonotonic:
		return putUint64(m, w[2], c.clock.monotonic())
	default:
		return errnoInval
	}
}

// fdstat says that the three descriptors are character devices which can be
// read or written only: neither files to seek in nor terminals.
func fdstat(_ *call, m Memory, w []uint64) errno {
	const characterDevice, rightRead, rightWrite = 2, 1 << 1, 1 << 6
	if !isStdio(w[0]) {
		return errnoBadf
	}
	b, ok := m.Read(uint32(w[1]), 24)
	if !ok {
		return errnoFault
	}
	clear(b)
	b[0] = characterDevice
	b[8] = rightWrite
	if w[0] == 0 {
		b[8] = rightRead
	}
	return errnoSuccess
}

// accept does nothing and says it worked: closing stdin, stdout or stderr, or
// setting their flags, changes nothing about them.
func accept(_ *call, _ Memory, w []uint64) errno {
	if !isStdio(w[0]) {
		return errnoBadf
	}
	return errnoSuccess
}

func filestat(_ *call, m Memory, w []uint64) errno {
	const characterDevice = 2
	if !isStdio(w[0]) {
		return errnoBadf
	}
	b, ok := m.Read(uint32(w[1]), 64)
	if !ok {
		return errnoFault
	}
	clear(b)
	b[16] = characterDevice
	return errnoSuccess
}

// noPreopen ends the search for preopened folders that every libc begins with.
func noPreopen(*call, Memory, []uint64) errno { return errnoBadf }

func noSeek(_ *call, _ Memory, w []uint64) errno {
	if isStdio(w[0]) {
		return errnoSpipe
	}
	return errnoBadf
}

// noSymlink is noFile for the one function whose descriptor comes third.
func noSymlink(c *call, m Memory, w []uint64) errno { return noFile(c, m, w[2:]) }

// maxVectors is how many buffers one fd_read or fd_write may name: what systems
// call IOV_MAX.
const maxVectors = 1024

// vectors calls f for each buffer of an iovec array, until it returns false.
func vectors(c *call, m Memory, at, count uint64, f func(b []byte) bool) errno {
	if count > maxVectors {
		return errnoInval
	}
	list, ok := m.Read(uint32(at), uint32(count*8))
	if !ok {
		return errnoFault
	}
	const perVector = 128 // of how many bytes that are copied one takes the time
	c.tank.charge(int(count) * perVector)
	for ; len(list) > 0; list = list[8:] {
		b, ok := m.Read(binary.LittleEndian.Uint32(list), binary.LittleEndian.Uint32(list[4:]))
		if !ok {
			return errnoFault
		}
		if !f(b) {
			break
		}
	}
	return errnoSuccess
}

// fdRead reads a command's input from stdin; a reactor's stdin is empty.
func fdRead(c *call, m Memory, w []uint64) errno {
	if w[0] != 0 {
		return errnoBadf
	}
	read := 0
	if e := vectors(c, m, w[1], w[2], func(b []byte) bool {
		if !c.command {
			return false
		}
		n := copy(b, c.input[c.inputRead:])
		c.tank.charge(n)
		c.inputRead += n
		read += n
		return n == len(b)
	}); e != errnoSuccess {
		return e
	}
	if !putUint32(m, w[3], uint32(read)) {
		return errnoFault
	}
	return errnoSuccess
}

// fdWrite takes a command's answer from its stdout; all else that a guest
// writes goes to the log.
func fdWrite(ctx context.Context, c *call, m Memory, w []uint64) (errno, error) {
	if w[0] != 1 && w[0] != 2 {
		return errnoBadf, nil
	}
	var written uint64
	var stopped error
	e := vectors(c, m, w[1], w[2], func(b []byte) bool {
		switch {
		case w[0] == 2:
			c.tank.charge(c.log.write(ctx, stderr, b))
		case !c.command:
			c.tank.charge(c.log.write(ctx, stdout, b))
		case int64(len(c.output))+int64(len(b)) > c.maxAnswer():
			stopped = failuref(abi.ReasonOutputTooLarge, "more than %d bytes on stdout", c.maxAnswer())
			return false
		default:
			c.output, c.hasOutput = append(c.output, b...), true
			c.tank.charge(len(b))
		}
		written += uint64(len(b))
		return true
	})
	switch {
	case stopped != nil:
		return errnoSuccess, stopped
	case e != errnoSuccess:
		return e, nil
	case !putUint32(m, w[3], uint32(min(written, math.MaxUint32))):
		return errnoFault, nil
	}
	return errnoSuccess, nil
}

// pollOneoff answers every subscription at once. Waiting for a clock moves the
// guest's clock on to the earliest time that was waited for; waiting for a
// descriptor is not supported.
func pollOneoff(c *call, m Memory, w []uint64) errno {
	const (
		subscriptionBytes, eventBytes = 48, 32
		tagClock, tagRead, tagWrite   = 0, 1, 2
		maxSubscriptions              = 4096
	)
	count := w[2]
	if count == 0 || count > maxSubscriptions {
		return errnoInval
	}
	in, ok := m.Read(uint32(w[0]), uint32(count*subscriptionBytes))
	if !ok {
		return errnoFault
	}
	out, ok := m.Read(uint32(w[1]), uint32(count*eventBytes))
	if !ok {
		return errnoFault
	}
	c.tank.charge(len(in) + len(out))
	// The two may overlap: read all before the first write.
	in = append([]byte(nil), in...)
	waits := make([]uint64, count) // of clocks, in nanoseconds from now
	earliest, clocks := uint64(math.MaxUint64), false
	for i := range waits {
		s := in[i*subscriptionBytes:]
		switch s[8] {
		case tagClock:
			e := errnoSuccess
			if waits[i], e = c.untilTimer(s[16:]); e != errnoSuccess {
				return e
			}
			earliest, clocks = min(earliest, waits[i]), true
		case tagRead, tagWrite:
		default:
			return errnoInval
		}
	}
	events := uint32(0)
	for i := range waits {
		s := in[i*subscriptionBytes:]
		e := errnoSuccess
		if s[8] != tagClock {
			e = errnoNotsup
		} else if waits[i] > earliest {
			continue
		}
		event := out[events*eventBytes:][:eventBytes]
		clear(event)
		copy(event, s[:8]) // user data
		binary.LittleEndian.PutUint16(event[8:], uint16(e))
		event[10] = s[8]
		events++
	}
	if clocks {
		c.clock.sleep(earliest)
	}
	if !putUint32(m, w[3], events) {
		return errnoFault
	}
	return errnoSuccess
}

// untilTimer reads a subscription to a clock: how many nanoseconds from now it
// goes off.
func (c *call) untilTimer(s []byte) (uint64, errno) {
	const absolute = 1
	id, timeout := binary.LittleEndian.Uint32(s), binary.LittleEndian.Uint64(s[8:])
	if id > clockMonotonic {
		return 0, errnoInval
	}
	if binary.LittleEndian.Uint16(s[24:])&absolute == 0 {
		return timeout, errnoSuccess
	}
	now := c.clock.monotonic()
	if id == clockRealtime {
		now = c.clock.wall()
	}
	return timeout - min(now, timeout), errnoSuccess
}

func procExit(_ context.Context, _ Memory, w []uint64) error { return &exited{uint32(w[0])} }

// randomGet fills memory with real randomness, in pieces, so that the call's
// deadline holds.
func randomGet(ctx context.Context, c *call, m Memory, w []uint64) (errno, error) {
	const (
		piece      = 256 << 10
		randomness = 16 // of how many bytes that are copied it takes the time
	)
	b, ok := m.Read(uint32(w[0]), uint32(w[1]))
	if !ok {
		return errnoFault, nil
	}
	for len(b) > 0 {
		if f := c.tank.until.passed(ctx); f != nil {
			return errnoSuccess, f
		}
		n := min(piece, len(b))
		// crypto/rand never fails: it ends the process where the system has no
		// randomness to give.
		_, _ = rand.Read(b[:n])
		c.tank.charge(n * randomness)
		b = b[n:]
	}
	return errnoSuccess, nil
}
