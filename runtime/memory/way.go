package memory

import (
	"bytes"
	"errors"
	"fmt"
	"sync"
)

// Way is how an instance is made pristine for the next call.
type Way uint8

// The ways, the best first.
const (
	// Auto is the best way that works here, as [Best] finds it.
	Auto Way = iota
	// PageScan copies back the pages that the kernel says were written.
	PageScan
	// FullCopy compares every page with the image and copies those that differ.
	FullCopy
	// Fresh puts nothing back: every call gets a new instance.
	Fresh
)

// String names the way, for people.
func (w Way) String() string {
	switch w {
	case Auto:
		return "the best way that works here"
	case PageScan:
		return "page scan and copy"
	case FullCopy:
		return "full copy"
	case Fresh:
		return "fresh instance per call"
	}
	return fmt.Sprintf("way(%d)", uint8(w))
}

// Best is the best way that works in this process. It is found by trying, once.
func Best() Way {
	way, _ := probed()
	return way
}

// WhyNotBetter says why Best is not [PageScan], or is nil.
func WhyNotBetter() error {
	_, err := probed()
	return err
}

// probed is set by init, since what it tries asks for it in turn.
var probed func() (Way, error)

func init() { probed = sync.OnceValues(findBest) }

func findBest() (Way, error) {
	err := probe(PageScan)
	if err == nil {
		return PageScan, nil
	}
	if other := probe(FullCopy); other != nil {
		return Fresh, errors.Join(err, other)
	}
	return FullCopy, err
}

// probe tries on a small memory everything that the way has to do.
func probe(way Way) error {
	const size, grown, limit = 4 * 64 << 10, 5 * 64 << 10, 6 * 64 << 10
	account := NewAccount(4 * limit)
	first, err := New(limit, account, way)
	if err != nil {
		return err
	}
	defer first.Free()
	b := first.Resize(size)
	if b == nil {
		return errors.New("no memory")
	}
	b[0], b[size-1] = 1, 2
	image, err := first.Capture()
	if err != nil {
		return err
	}
	defer image.Free()
	want := bytes.Clone(b)
	second, err := New(limit, account, way)
	if err != nil {
		return err
	}
	defer second.Free()
	if second.Resize(size) == nil {
		return errors.New("no memory")
	}
	for _, m := range []*Memory{first, second} {
		if err := m.Attach(image); err != nil {
			return err
		}
		// Once a page was written it stays private; the second round must
		// find it all the same.
		for round := range 3 {
			b := m.Resize(grown)
			if b == nil {
				return errors.New("no memory to grow")
			}
			for i := round * pageBytes; i < len(b); i += 3 * pageBytes {
				b[i] ^= 0xff
			}
			m.Answer(size)
			if len(m.Resize(0)) != size {
				return errors.New("a memory does not shrink")
			}
			if err := m.Restore(); err != nil {
				return err
			}
			b = m.Resize(grown)
			if !bytes.Equal(b[:size], want) || bytes.Count(b[size:], []byte{0}) != grown-size {
				return fmt.Errorf("%v leaves something behind", way)
			}
			m.Answer(size)
			m.Resize(0)
		}
	}
	return nil
}
