package hosts

import (
	"errors"
	"time"

	"github.com/weir-mcp/weir/abi"
	"github.com/weir-mcp/weir/internal/wire"
)

// warned remembers the last warning about a host that is down.
type warned struct {
	at   time.Time
	text string
}

// warnEvery is how often a host that stays down is warned of when its words
// change, as those of the system do that name a port.
const warnEvery = time.Minute

// report logs what changed, once. The caller holds mu.
func (h *Host) report(old, next *state, err error) {
	wasDown := old != nil && old.listing.Err != nil
	switch {
	case err != nil && h.life.Err() != nil: // closing
	case err != nil && next.listing.Err == nil:
		if old.failed {
			return // it has been said
		}
		h.log.Warn("the list of the host cannot be fetched again; the last one stays in force for a while", "error", clip(err.Error()))
	case err != nil:
		h.reportDown(!wasDown || !old.open() && next.open(), next.open(), err)
	case wasDown:
		h.log.Info("the host answers again", "interceptors", len(next.listing.Interceptors))
	}
	if err == nil {
		h.reportSkipped(old, next)
	}
}

// reportDown warns when there is news, and else now and then.
func (h *Host) reportDown(news, open bool, err error) {
	text, now := clip(err.Error()), time.Now()
	if !news && (text == h.warned.text || now.Sub(h.warned.at) < warnEvery) {
		return
	}
	h.warned = warned{now, text}
	message := "the host cannot be listed; what it may guard is blocked until it answers"
	if h.failOpen {
		message = "the host cannot be listed; it fails open, so operations go on without its interceptors until it answers"
	}
	breaker := BreakerClosed
	if open {
		breaker = BreakerOpen
	}
	h.log.Warn(message, "error", text, "wayOut", h.source.wayOut(), "breaker", breaker)
}

// reportSkipped warns of descriptors that cannot be used and were not there
// before.
func (h *Host) reportSkipped(old, next *state) {
	var before []abi.Skipped
	if old != nil {
		before = old.listing.Skipped
	}
	for i, s := range next.listing.Skipped {
		if i < len(before) && sameSkip(before[i], s) {
			continue
		}
		h.log.Warn("an interceptor was skipped: its descriptor cannot be used",
			"interceptor", clip(s.Name), "index", s.Index, "error", clip(s.Err.Error()), "skipped", len(next.listing.Skipped))
		if i+1 == maxSkipLines {
			return
		}
	}
}

// maxSkipLines bounds what one list can write into the log.
const maxSkipLines = 20

func sameSkip(a, b abi.Skipped) bool {
	return a.Name == b.Name && a.Index == b.Index && a.Err.Error() == b.Err.Error()
}

// clip bounds a stranger's words in the log.
func clip(s string) string { return wire.Clip(s, 1<<10) }

func errText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

var errClosed = errors.New("the gateway is closing")
