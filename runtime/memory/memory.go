package memory

import (
	"errors"
	"fmt"
	"sync"
)

// pageBytes is what memories are compared and copied by: the page of nearly
// every system. A system with larger ones is not told apart; it never gets an
// image mapped (see the self-test).
const pageBytes = 4 << 10

// Memory is the linear memory of one instance. It is used by one goroutine at a
// time, [Memory.Free] excepted.
type Memory struct {
	account *Account
	limit   uint64 // the most that the guest may have
	size    uint64 // what the guest has
	high    uint64 // the most it had since it was last put back
	image   *Image // what it began as, nil when nothing
	space   space

	answered bool   // the next Resize is the host's own
	answer   uint64 // and gives this

	running sync.Mutex // held while guest code runs
	freed   bool
}

// space is the bytes beneath a memory.
type space interface {
	// resize gives the first size bytes, which are those that were there and
	// zeros, or nil when the system has no room.
	resize(size uint64) []byte
	// capture makes an image of the first size bytes.
	capture(size uint64) (*Image, error)
	// attach makes the bytes begin as the image.
	attach(image *Image) error
	// restore makes the bytes those of the image again, and zeros behind it up
	// to high, above which nothing was written.
	restore(image *Image, high uint64) error
	free()
}

// New returns a memory without bytes that may have up to limit of them, charged
// to the account. The way is how it will be put back.
func New(limit uint64, account *Account, way Way) (*Memory, error) {
	if way == Auto {
		way = Best()
	}
	space, err := newSpace(limit, way)
	if err != nil && account.shortage() {
		space, err = newSpace(limit, way)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNoRoom, err)
	}
	return &Memory{account: account, limit: limit, space: space}, nil
}

// Size is what the guest has, in bytes.
func (m *Memory) Size() uint64 { return m.size }

// Resize gives the memory size bytes and returns all of them. It returns nil
// where that is more than the limit, the account or the system allows: nothing
// is changed then. After [Memory.Answer] it ignores the size.
func (m *Memory) Resize(size uint64) []byte {
	if m.answered {
		size, m.answered = m.answer, false
	} else if size > m.limit {
		return nil
	}
	if size > m.high {
		if m.account.take(size-m.high) != nil {
			return nil
		}
	}
	b := m.space.resize(size)
	if b == nil {
		if size > m.high {
			m.account.give(size - m.high)
		}
		return nil
	}
	m.size, m.high = size, max(m.high, size)
	return b
}

// Answer has the next Resize give size bytes, whatever it is asked for: how a
// host shrinks the memory of an engine that only knows growth. size must not be
// above the limit.
func (m *Memory) Answer(size uint64) { m.answered, m.answer = true, size }

// Withdraw takes back an Answer that was not asked for.
func (m *Memory) Withdraw() { m.answered = false }

// Enter holds the memory while guest code runs: it cannot be freed until
// [Memory.Leave]. It reports false when it has been freed.
func (m *Memory) Enter() bool {
	m.running.Lock()
	if m.freed {
		m.running.Unlock()
		return false
	}
	return true
}

// Leave ends what Enter began.
func (m *Memory) Leave() { m.running.Unlock() }

// Free frees the bytes, after waiting for guest code that runs in them. It may
// be called from any goroutine and more than once.
func (m *Memory) Free() {
	m.running.Lock()
	defer m.running.Unlock()
	if m.freed {
		return
	}
	m.freed = true
	m.space.free()
	m.account.give(m.high)
	m.image.release()
	m.image = nil
}

// Capture freezes what the memory holds now. The image is charged to the same
// account.
func (m *Memory) Capture() (*Image, error) {
	if err := m.account.take(m.size); err != nil {
		return nil, err
	}
	image, err := m.space.capture(m.size)
	if err != nil {
		m.account.give(m.size)
		return nil, fmt.Errorf("%w: freezing a memory: %w", ErrNoRoom, err)
	}
	image.account, image.size = m.account, m.size
	image.users.Store(1)
	return image, nil
}

var errSize = errors.New("the memory has another size than its image")

// Attach makes the memory begin as the image, which it must have the size of.
// It is put back to this image from then on.
func (m *Memory) Attach(image *Image) error {
	if m.size != image.size {
		return errSize
	}
	if err := m.space.attach(image); err != nil {
		return fmt.Errorf("%w: mapping an image: %w", ErrNoRoom, err)
	}
	image.users.Add(1)
	m.image.release()
	m.image = image
	return m.Restore()
}

// Restore makes the memory what the image holds that it is attached to. It must
// have the image's size again. After an error the memory is good for
// [Memory.Free] only.
func (m *Memory) Restore() error {
	if m.image == nil || m.size != m.image.size {
		return errSize
	}
	if err := m.space.restore(m.image, m.high); err != nil {
		return fmt.Errorf("putting a memory back: %w", err)
	}
	m.account.give(m.high - m.size)
	m.high = m.size
	return nil
}
