package runtime

import (
	"fmt"
	goruntime "runtime"
	"time"
)

// Limits bounds one module (abi.md "Limits"). A zero field means its default,
// as [DefaultLimits] gives it. Negative values are refused by [Runtime.Load]
// unless the field says what they mean.
type Limits struct {
	// ModuleBytes is the largest module file, in bytes.
	ModuleBytes int64
	// Memory is the most linear memory that one instance may have, in bytes;
	// whole pages of 64 KiB count. A module that declares a larger minimum is
	// refused at load, and growing past it gives the guest -1.
	Memory int64
	// TableElements is the most elements that all tables of an instance may
	// have together; the same holds for it. Where several tables can grow, they
	// share what the limit leaves equally.
	TableElements uint32
	// CallTime bounds the running time of one call, the start of its instance
	// included and the wait for a slot not.
	CallTime time.Duration
	// LoadTime bounds the start section, _initialize and weir_describe
	// together.
	LoadTime time.Duration
	// CompileTime bounds how long a load waits for the engine's compiler, once
	// its turn has come. It is for machines that are far slower than what the
	// limits of package meter were made for, where the worst module takes some
	// seconds. See [Runtime.Load].
	CompileTime time.Duration
	// Fuel bounds what one call may spend, in units of package meter: the same
	// count on every machine and engine, of weir_invoke and weir_reseed, or of
	// all of a command. 0 means no such bound, but time's.
	Fuel int64
	// InputBytes bounds the payload of a call, in bytes. A request payload
	// that accompanies a response and is larger is left out.
	InputBytes int64
	// OutputBytes bounds the answer of a guest, in bytes; 64 KiB are allowed
	// on top of it for what surrounds a payload.
	OutputBytes int64
	// LogLines is how many lines one call may log; negative means none.
	LogLines int
	// LogLineBytes is where a line is cut, in bytes.
	LogLineBytes int
	// Calls is how many calls of the module run at once.
	Calls int
	// Queue is how many more calls wait for their turn before further ones
	// fail as busy; negative means none.
	Queue int
}

// answerOverhead is what an answer may have beyond Limits.OutputBytes.
const answerOverhead = 64 << 10

// DefaultLimits returns the defaults of abi.md on this machine.
func DefaultLimits() Limits {
	calls := 2 * goruntime.GOMAXPROCS(0)
	return Limits{
		ModuleBytes:   32 << 20,
		Memory:        64 << 20,
		TableElements: 100_000,
		CallTime:      time.Second,
		LoadTime:      10 * time.Second,
		CompileTime:   2 * time.Minute,
		InputBytes:    4 << 20,
		OutputBytes:   4 << 20,
		LogLines:      100,
		LogLineBytes:  4 << 10,
		Calls:         calls,
		Queue:         4 * calls,
	}
}

// orDefaults fills in what was left zero and checks the rest.
func (l Limits) orDefaults() (Limits, error) {
	d := DefaultLimits()
	if l.Queue == 0 && l.Calls > 0 {
		d.Queue = 4 * l.Calls
	}
	err := firstError(
		orDefault("ModuleBytes", &l.ModuleBytes, d.ModuleBytes),
		orDefault("Memory", &l.Memory, d.Memory),
		orDefault("TableElements", &l.TableElements, d.TableElements),
		orDefault("CallTime", &l.CallTime, d.CallTime),
		orDefault("LoadTime", &l.LoadTime, d.LoadTime),
		orDefault("CompileTime", &l.CompileTime, d.CompileTime),
		orDefault("Fuel", &l.Fuel, 0),
		orDefault("InputBytes", &l.InputBytes, d.InputBytes),
		orDefault("OutputBytes", &l.OutputBytes, d.OutputBytes),
		orDefault("LogLineBytes", &l.LogLineBytes, d.LogLineBytes),
		orDefault("Calls", &l.Calls, d.Calls),
		orDefaultOrNone(&l.LogLines, d.LogLines),
		orDefaultOrNone(&l.Queue, d.Queue),
	)
	if err == nil && l.Memory < pageBytes {
		err = fmt.Errorf("limit Memory: %d bytes are less than one page (%d)", l.Memory, pageBytes)
	}
	if err == nil && l.Memory > maxMemory {
		err = fmt.Errorf("limit Memory: %d bytes are more than a 32-bit module can address (%d)", l.Memory, int64(maxMemory))
	}
	return l, err
}

const (
	pageBytes = 64 << 10
	maxMemory = 4 << 30
)

// pages is Limits.Memory in whole pages.
func (l Limits) pages() uint32 { return uint32(l.Memory / pageBytes) }

func orDefault[T int | int64 | uint32 | time.Duration](name string, value *T, fallback T) error {
	if *value < 0 {
		return fmt.Errorf("limit %s: %v is negative", name, *value)
	}
	if *value == 0 {
		*value = fallback
	}
	return nil
}

func orDefaultOrNone(value *int, fallback int) error {
	switch {
	case *value < 0:
		*value = 0
	case *value == 0:
		*value = fallback
	}
	return nil
}

func firstError(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
