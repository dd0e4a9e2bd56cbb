package library

import (
	"log/slog"
	"os"
	"path/filepath"

	"github.com/fsnotify/fsnotify"
)

// watch reports changes in a folder. It may miss some, or all where the system
// cannot watch: the library looks at the folder from time to time anyway.
type watch struct {
	changed chan string // names of children; empty for "something"
	dir     string
	log     *slog.Logger
	notify  *fsnotify.Watcher
	watched os.FileInfo // the folder that is watched
	done    chan struct{}
	ended   chan struct{}
	failed  bool // that the folder cannot be watched was logged
}

func newWatch(dir string, log *slog.Logger) *watch {
	w := &watch{changed: make(chan string), dir: dir, log: log, done: make(chan struct{}), ended: make(chan struct{})}
	notify, err := fsnotify.NewWatcher()
	if err != nil {
		w.report(err)
		close(w.ended)
		return w
	}
	w.notify = notify
	w.renew()
	go w.run()
	return w
}

func (w *watch) report(err error) {
	if !w.failed {
		w.failed = true
		w.log.Warn("the folder cannot be watched; changes are found by looking at it from time to time", "folder", w.dir, "cause", err)
	}
}

// renew watches what the folder's path leads to now: it may have been removed
// and made again, or be a link that was turned.
func (w *watch) renew() {
	if w.notify == nil {
		return
	}
	info, err := os.Stat(w.dir)
	if err != nil {
		return // reported by who looks at the folder
	}
	if len(w.notify.WatchList()) > 0 {
		if w.watched != nil && os.SameFile(w.watched, info) {
			return
		}
		_ = w.notify.Remove(w.dir)
	}
	if err := w.notify.Add(w.dir); err != nil {
		w.report(err)
		return
	}
	w.watched = info
}

func (w *watch) run() {
	defer close(w.ended)
	for {
		name := ""
		select {
		case <-w.done:
			return
		case e, ok := <-w.notify.Events:
			if !ok {
				return
			}
			name = filepath.Base(e.Name)
		case _, ok := <-w.notify.Errors:
			if !ok {
				return
			}
		}
		select {
		case w.changed <- name:
		case <-w.done:
			return
		}
	}
}

func (w *watch) close() {
	close(w.done)
	<-w.ended
	if w.notify != nil {
		_ = w.notify.Close()
	}
}
