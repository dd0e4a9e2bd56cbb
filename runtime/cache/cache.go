package cache

import (
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/weir-mcp/weir/internal/filelock"
	"github.com/weir-mcp/weir/internal/private"
)

// Options says where a cache is.
type Options struct {
	// Dir is the folder of the cache, made with mode 0700 if it does not exist.
	// An existing one must be this user's alone.
	Dir string
	// MaxBytes is the size that all entries may have together; 0 or less means
	// DefaultMaxBytes. An entry that alone is larger is not kept.
	MaxBytes int64
	// Logger receives what is wrong with the cache; nil means [slog.Default].
	Logger *slog.Logger
}

// DefaultMaxBytes is what Options.MaxBytes is unless it is set: 1 GiB, some
// fifty modules in Go or thousands of small ones.
const DefaultMaxBytes = 1 << 30

// Key names an entry: a digest of all that its contents depend on.
type Key = [32]byte

// Cache is a cache in a folder. It is safe for concurrent use, by any number of
// processes of its user.
type Cache struct {
	dir    string
	max    int64
	secret []byte
	logger *slog.Logger
	failed sync.Once // warns of a disk that takes nothing
}

const (
	lockFile   = "lock"
	secretFile = "key"
	tmpPrefix  = "tmp-"
	// abandoned is how old a half-written file is when its process must be dead.
	abandoned = time.Hour
)

// Open opens the cache, and makes it if it is missing. It fails when the folder
// cannot be made or others have access to it; one does without the cache then.
func Open(o Options) (*Cache, error) {
	c := &Cache{dir: o.Dir, max: o.MaxBytes, logger: o.Logger}
	if c.max <= 0 {
		c.max = DefaultMaxBytes
	}
	if c.logger == nil {
		c.logger = slog.Default()
	}
	if err := private.Dir(c.dir); err != nil {
		return nil, fmt.Errorf("compile cache: %w", err)
	}
	var err error
	if c.secret, err = c.loadSecret(); err != nil {
		return nil, fmt.Errorf("compile cache: %w", err)
	}
	return c, nil
}

func (c *Cache) path(key Key) string { return filepath.Join(c.dir, hex.EncodeToString(key[:])) }

// Get returns what was put under the key. An entry that is not exactly what was
// put there, or that others could have written to, is removed with a warning.
// The parts share memory, which is the caller's.
func (c *Cache) Get(key Key) (parts [][]byte, ok bool) {
	path := c.path(key)
	parts, err := c.read(key, path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, false
	}
	if err != nil {
		c.logger.Warn("compile cache: an entry is not what was put there; it is made anew", "file", path, "cause", err)
		_ = os.RemoveAll(path) // whatever it is: a link goes, what it leads to stays
		return nil, false
	}
	now := time.Now()
	_ = os.Chtimes(path, now, now) // for evict
	return parts, true
}

func (c *Cache) read(key Key, path string) ([][]byte, error) {
	f, err := private.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return c.unseal(key, f)
}

// Put keeps the parts under the key, in place of what is there. It appears at
// once and whole, or not at all. A disk that is full or cannot be written to is
// a warning, once; then the oldest entries go, if all are too large together.
func (c *Cache) Put(key Key, parts ...[]byte) {
	path := c.path(key)
	size, err := c.write(key, path, parts)
	if err != nil {
		c.failed.Do(func() {
			c.logger.Warn("compile cache: cannot be written to; what does not fit is compiled at every start", "folder", c.dir, "error", err)
		})
		return
	}
	if size > 0 {
		c.evict(path)
	}
}

func (c *Cache) write(key Key, path string, parts [][]byte) (size int64, err error) {
	header := c.seal(key, parts)
	size = int64(len(header))
	for _, p := range parts {
		size += int64(len(p))
	}
	if size > c.max {
		return 0, nil
	}
	return size, c.replace(path, append([][]byte{header}, parts...)...)
}

// replace writes a file under another name and renames it.
func (c *Cache) replace(path string, contents ...[]byte) error {
	f, err := os.CreateTemp(c.dir, tmpPrefix+"*") // mode 0600
	if err != nil {
		return err
	}
	for _, b := range contents {
		if err == nil {
			_, err = f.Write(b)
		}
	}
	err = errors.Join(err, f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		_ = os.Remove(f.Name())
	}
	return err
}

// evict removes the entries that were not used for the longest time until the
// rest is within the bound, but not the one at path; and what dead processes
// left half written. It does what it can. What somebody reads meanwhile is read
// to its end: entries are only ever exchanged and removed, never written to, and
// where an open file cannot be removed it stays.
func (c *Cache) evict(path string) {
	lock, err := filelock.Try(filepath.Join(c.dir, lockFile))
	if lock == nil || err != nil {
		return // somebody else is at it
	}
	defer lock.Unlock()
	list, err := os.ReadDir(c.dir)
	if err != nil {
		return
	}
	type entry struct {
		path string
		size int64
		used time.Time
	}
	var all []entry
	var total int64
	for _, d := range list {
		info, err := d.Info()
		if err != nil {
			continue
		}
		e := entry{filepath.Join(c.dir, d.Name()), info.Size(), info.ModTime()}
		switch {
		case strings.HasPrefix(d.Name(), tmpPrefix) && time.Since(e.used) > abandoned:
			_ = os.Remove(e.path)
		case isKey(d.Name()):
			total += e.size
			if e.path != path {
				all = append(all, e)
			}
		}
	}
	slices.SortFunc(all, func(a, b entry) int { return cmp.Or(a.used.Compare(b.used), cmp.Compare(a.path, b.path)) })
	for _, e := range all {
		if total <= c.max {
			return
		}
		if os.RemoveAll(e.path) == nil {
			total -= e.size
		}
	}
}

// isKey reports whether a file has the name of an entry. Others are not the
// cache's to remove.
func isKey(name string) bool {
	b, err := hex.DecodeString(name)
	return err == nil && len(b) == len(Key{}) && name == strings.ToLower(name)
}

// secretWait is how long opening waits for another process that makes the
// secret, which takes no time.
const secretWait = 10 * time.Second

// loadSecret reads the secret of this user, or makes it. One that is not a
// secret, since others had access to it, is replaced; with it go all entries.
func (c *Cache) loadSecret() ([]byte, error) {
	path := filepath.Join(c.dir, secretFile)
	if secret, err := readSecret(path); err == nil {
		return secret, nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), secretWait)
	defer cancel()
	lock, err := filelock.Wait(ctx, filepath.Join(c.dir, lockFile))
	if err != nil {
		return nil, err
	}
	defer lock.Unlock()
	secret, err := readSecret(path) // another process may have made it meanwhile
	if err == nil {
		return secret, nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		c.logger.Warn("compile cache: its key is no secret of this user's; a new one is made, and all is compiled anew", "cause", err)
		if err := os.RemoveAll(path); err != nil {
			return nil, err
		}
	}
	secret = newSecret()
	return secret, c.replace(path, secret)
}
