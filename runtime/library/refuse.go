package library

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// collision is a refusal on account of another file, or of a native interceptor
// when by is empty. It lasts until the other changes.
type collision struct{ by, text string }

func (c *collision) Error() string { return c.text }

// unadmitted is a refusal by [Options.Admit]. It lasts until the file changes.
type unadmitted struct{ err error }

func (u *unadmitted) Error() string { return "the whole module is refused: " + u.err.Error() }
func (u *unadmitted) Unwrap() error { return u.err }

func sharedName(name, file string) error {
	return &collision{by: file, text: fmt.Sprintf("the whole module is refused: %s serves an interceptor %q already; rename it or remove one of the files", file, name)}
}

// maxRetry bounds the time between two attempts.
const maxRetry = time.Minute

// atRest is after how many attempts on the same bytes a file counts as whole.
const atRest = 2

// refuse notes that a file does not serve what is in it and when to try again.
// It is logged once, and once more when the complaint about a file that has
// come to rest is another one: one line for a file that is copied in slowly.
func (f *folder) refuse(k *file, err error) {
	if f.ctx.Err() != nil {
		return
	}
	c, collides := errors.AsType[*collision](err)
	_, final := errors.AsType[*unadmitted](err)
	gist := withoutDigits(err.Error())
	whole := collides || final || k.failures >= atRest
	if !errors.Is(err, errChanging) && (k.problem == "" || whole && k.problem != gist) {
		f.report(k, err)
		k.problem = gist
	}
	f.l.mu.Lock()
	f.l.problems[k.name] = err
	f.l.mu.Unlock()
	k.rival = ""
	if collides {
		k.rival = c.by // time alone changes nothing
		return
	}
	if !final {
		k.retry = time.Now().Add(pause(f.l.o.Retry, k.failures))
	}
	k.failures++
	f.reconsider(k.name) // who had these bytes too may have waited for it
}

// pause is how long a file is left alone after so many failures before this one.
func pause(first time.Duration, failures int) time.Duration {
	for ; failures > 0 && first < maxRetry; failures-- {
		first *= 2
	}
	return min(first, maxRetry)
}

// withoutDigits makes the complaints about two halves of one file equal.
func withoutDigits(text string) string {
	return strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' {
			return -1
		}
		return r
	}, text)
}

func (f *folder) report(k *file, err error) {
	if digest := f.servedDigest(k.name); digest != "" {
		f.l.o.Logger.Error("a new version of a module is refused; the last good one serves on", "file", k.name, "serving", digest, "cause", err)
		return
	}
	f.l.o.Logger.Error("a module is refused and not served", "file", k.name, "cause", err)
}

// reconsider tries again the files that were refused on account of one that
// changed.
func (f *folder) reconsider(changed string) {
	for _, name := range slices.Sorted(maps.Keys(f.files)) {
		if k := f.files[name]; k.rival == changed {
			f.enqueue(k)
		}
	}
}

func (f *folder) retryDue() {
	now := time.Now()
	for _, name := range slices.Sorted(maps.Keys(f.files)) {
		if k := f.files[name]; !k.retry.IsZero() && !k.retry.After(now) {
			f.enqueue(k)
		}
	}
}

func (f *folder) scheduleRetry(t *time.Timer) {
	var next time.Time
	for _, k := range f.files {
		if !k.retry.IsZero() && (next.IsZero() || k.retry.Before(next)) {
			next = k.retry
		}
	}
	if next.IsZero() {
		t.Stop()
		return
	}
	t.Reset(time.Until(next))
}
