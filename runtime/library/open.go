package library

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// OpenFolder makes a library of a folder. See [Library.Open].
func OpenFolder(ctx context.Context, dir string, o Options) (*Library, error) {
	l := New(o)
	if err := l.Open(ctx, dir); err != nil {
		return nil, err
	}
	return l, nil
}

// OpenFile makes a library of one .wasm file, whatever its name. A file that
// cannot be served is an error. It is loaded before OpenFile returns and is not
// watched.
func OpenFile(ctx context.Context, path string, o Options) (*Library, error) {
	l := New(o)
	if l.o.Loader == nil {
		return nil, errNoLoader
	}
	name := filepath.Base(path)
	c, err := l.read(path)
	if err != nil {
		return nil, fmt.Errorf("module %s: %w", path, err)
	}
	s, err := l.load(ctx, name, &c)
	if err != nil {
		return nil, fmt.Errorf("module %s: %w", path, err)
	}
	l.mu.Lock()
	l.files = []*served{s}
	notify := l.publish()
	l.mu.Unlock()
	notify()
	return l, nil
}

var errNoLoader = errors.New("the library has no loader for modules")

// Open serves the modules of a folder and keeps watching it until
// [Library.Close]. It returns at once; [Library.Ready] waits for the first
// load. A folder that is not there is [ErrNoFolder]; one without modules is
// served with one warning, and modules that appear later are picked up. One
// library opens one folder. Ctx bounds the opening only, of a folder on a network
// that has gone too.
//
// A module that does not load is left out and tried again: when the file
// changes, when a file it collided with goes, and from time to time, unless
// [Options.Admit] refused it. Of files
// with an interceptor name or all bytes in common the one that already serves
// stays, at start the first by name; the others are refused whole.
func (l *Library) Open(ctx context.Context, dir string) error {
	if l.o.Loader == nil {
		return errNoLoader
	}
	if err := await(ctx, dir, usable); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return ErrClosed
	}
	if l.folder != nil {
		return fmt.Errorf("the library serves the folder %s already", l.folder.dir)
	}
	l.folder = newFolder(l, dir)
	go l.folder.run()
	return nil
}

// usable says why a folder cannot be served, or nil.
func usable(dir string) error {
	info, err := os.Stat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%w: %s; create it, or give the folder that holds the modules", ErrNoFolder, dir)
	case err != nil:
		return fmt.Errorf("folder of modules: %w", err)
	case !info.IsDir():
		return fmt.Errorf("%w: %s is a file; give the folder that holds the modules", ErrNoFolder, dir)
	}
	if _, err := os.ReadDir(dir); err != nil {
		return fmt.Errorf("folder of modules: %w", err)
	}
	return nil
}

// await asks about a folder, no longer than ctx: one on a network that has gone
// may never answer. What was asked then goes on by itself.
func await(ctx context.Context, dir string, ask func(dir string) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	answered := make(chan error, 1)
	go func() { answered <- ask(dir) }()
	select {
	case err := <-answered:
		return err
	case <-ctx.Done():
		return fmt.Errorf("folder of modules: %s does not answer: %w", dir, ctx.Err())
	}
}

// Rescan looks at the folder now and returns when every file that has changed
// since has been loaded or refused.
func (l *Library) Rescan(ctx context.Context) error {
	l.mu.Lock()
	f := l.folder
	l.mu.Unlock()
	if f == nil {
		return nil
	}
	done := make(chan struct{})
	select {
	case f.rescans <- done:
	case <-f.stopped:
		return ErrClosed
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case <-done:
		return nil
	case <-f.stopped:
		return ErrClosed
	case <-ctx.Done():
		return ctx.Err()
	}
}
