package memory

import "fmt"

// Foreign is the linear memory of an instance whose bytes belong to an engine
// that makes and grows them itself and never moves or shrinks them. It is used
// by one goroutine at a time.
//
// The bytes that its methods are given must be mapped memory of the engine's own,
// never Go's: images are mapped over them. They are zero where the engine has
// grown them.
//
// Such an engine does not ask before it grows, so what a guest may grow to is
// charged before it runs, by [Foreign.Reserve], and what it has not used given
// back after it, by [Foreign.Settle].
type Foreign struct {
	account *Account
	charged uint64
	way     Way
	image   *Image
	space   space // over the bytes that were attached
}

// NewForeign returns a memory that has nothing yet. The way is how it will be
// put back.
func NewForeign(account *Account, way Way) *Foreign {
	if way == Auto {
		way = Best()
	}
	return &Foreign{account: account, way: way}
}

// Begin charges the size that the memory begins with.
func (f *Foreign) Begin(size uint64) error {
	if size <= f.charged {
		return nil
	}
	if err := f.account.take(size - f.charged); err != nil {
		return err
	}
	f.charged = size
	return nil
}

// Reserve charges up to most bytes, more than half of what the account has left
// excepted, so that others find room too. It returns what the memory may have
// until [Foreign.Settle].
func (f *Foreign) Reserve(most uint64) uint64 {
	if most > f.charged {
		f.charged += f.account.takeSome(most - f.charged)
	}
	return f.charged
}

// Settle gives back what is charged beyond the size that the memory has.
func (f *Foreign) Settle(size uint64) {
	if size < f.charged {
		f.account.give(f.charged - size)
		f.charged = size
	}
}

// Capture freezes the bytes, which are all of the memory, and charges the image
// to the same account.
func (f *Foreign) Capture(bytes []byte) (*Image, error) {
	size := uint64(len(bytes))
	if err := f.account.take(size); err != nil {
		return nil, err
	}
	image, err := foreignSpace(bytes, f.way).capture(size)
	if err != nil {
		f.account.give(size)
		return nil, fmt.Errorf("%w: freezing a memory: %w", ErrNoRoom, err)
	}
	image.account, image.size = f.account, size
	image.users.Store(1)
	return image, nil
}

// Attach makes the bytes, which are all of the memory, those of the image. They
// are put back to it from then on.
func (f *Foreign) Attach(bytes []byte, image *Image) error {
	if uint64(len(bytes)) != image.size {
		return errSize
	}
	space := foreignSpace(bytes, f.way)
	if err := space.attach(image); err != nil {
		return fmt.Errorf("%w: mapping an image: %w", ErrNoRoom, err)
	}
	image.users.Add(1)
	f.image.release()
	f.image, f.space = image, space
	return f.Restore(image.size)
}

// Restore makes the bytes those of the image again. The memory's size must be
// the image's: what an engine has grown it does not take back.
func (f *Foreign) Restore(size uint64) error {
	if f.image == nil || size != f.image.size {
		return errSize
	}
	if err := f.space.restore(f.image, size); err != nil {
		return fmt.Errorf("putting a memory back: %w", err)
	}
	return nil
}

// Free gives back what is charged. The engine must have freed the bytes.
func (f *Foreign) Free() {
	f.Settle(0)
	f.image.release()
	f.image, f.space = nil, nil
}
