package memory

// Charge is what somebody has charged to an account for memory of another kind
// than this package's. The zero value has no account and bounds nothing. It is
// used by one goroutine at a time.
type Charge struct {
	account *Account
	bytes   uint64
}

// NewCharge returns a charge of nothing.
func NewCharge(account *Account) Charge { return Charge{account: account} }

// Bytes is what is charged.
func (c *Charge) Bytes() uint64 { return c.bytes }

// Set charges so many bytes in all: it takes what is missing, or gives back what
// is too much. The error is an [ErrNoRoom], and then nothing has changed.
func (c *Charge) Set(bytes uint64) error {
	if bytes < c.bytes {
		c.account.give(c.bytes - bytes)
	} else if err := c.account.take(bytes - c.bytes); err != nil {
		return err
	}
	c.bytes = bytes
	return nil
}

// Share charges up to so many bytes in all, taking no more than an eighth of
// what the account has left, and returns what is charged then. It has nobody
// give up what is not in use.
func (c *Charge) Share(most uint64) uint64 {
	if most <= c.bytes {
		_ = c.Set(most) // giving back does not fail
		return c.bytes
	}
	more := most - c.bytes
	if c.account != nil {
		more = min(more, uint64(max(0, c.account.limit-c.account.used.Load()))/8)
		if !c.account.try(int64(more)) {
			more = 0
		}
	}
	c.bytes += more
	return c.bytes
}

// Free gives everything back.
func (c *Charge) Free() { _ = c.Set(0) }
