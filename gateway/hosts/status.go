package hosts

import "time"

// HostStatus is what is known of one host, for metrics and for people.
type HostStatus struct {
	Name string
	// Up says that there is a valid list. A host that has not been asked yet is
	// not up.
	Up       bool
	FailOpen bool
	Breaker  Breaker
	// Listed is how many interceptors the list in force holds, Skipped how many
	// descriptors of it cannot be used. Age is how old it is, as it was fetched;
	// 0 where there is none.
	Listed, Skipped int
	Age             time.Duration
	// LastError is why the last attempt that failed brought no list, with secrets
	// masked, and LastErrorAt when; nil and zero when none has. It stays when the
	// host is up again.
	LastError   error
	LastErrorAt time.Time
	// Attempts counts discoveries that were begun, Failures those of them that
	// brought no list.
	Attempts, Failures uint64
}

// Status is what is known of each host in the configured order. It asks none.
func (s *Set) Status() []HostStatus {
	all := make([]HostStatus, len(s.hosts))
	for i, h := range s.hosts {
		all[i] = h.Status()
	}
	return all
}

// Status is what is known of the host. It does not ask it.
func (h *Host) Status() HostStatus {
	h.mu.Lock()
	defer h.mu.Unlock()
	st := HostStatus{Name: h.name, FailOpen: h.failOpen, Breaker: BreakerClosed,
		LastError: h.lastError, LastErrorAt: h.lastErrorAt, Attempts: h.attempts, Failures: h.failures}
	s := h.state.Load()
	if s == nil {
		return st
	}
	if s.open() {
		st.Breaker = BreakerOpen
		if h.flight != nil {
			st.Breaker = BreakerHalfOpen
		}
	}
	if s.listing.Err == nil {
		st.Up = h.source.valid()
		st.Listed, st.Skipped, st.Age = len(s.listing.Interceptors), len(s.listing.Skipped), time.Since(s.at)
	}
	return st
}

// failed remembers a failure for the status. The caller holds mu.
func (h *Host) failed(err error, now time.Time) {
	if h.life.Err() != nil {
		return // closing is none
	}
	h.failures++
	h.lastError, h.lastErrorAt = h.masked(err), now
}
