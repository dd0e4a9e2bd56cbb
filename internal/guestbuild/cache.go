package guestbuild

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/weir-mcp/weir/internal/filelock"
	"github.com/weir-mcp/weir/internal/private"
)

// MaxCacheBytes is the size that all modules in the cache may have together. A
// module asked for within the last hour is not removed, whatever the size:
// somebody may be about to read it.
const MaxCacheBytes = 256 << 20

const recently = time.Hour

// cache keeps each module in a folder of its own, named by the digest of its
// source, with its own checksum beside it.
type cache struct {
	dir string
	max int64
	now func() time.Time
}

const sumFile = "sha256"

// userCache is the user's cache, made if it is missing. Without a home it is a
// folder of the user's own among the temporary ones, and the go command, which
// wants a home too, is given folders in there by the environment returned.
func userCache(env []string) (cache, []string, error) {
	c := cache{max: MaxCacheBytes, now: time.Now}
	base, err := os.UserCacheDir()
	if err != nil || !filepath.IsAbs(base) {
		if base, err = filepath.Abs(filepath.Join(os.TempDir(), "weir-"+strconv.Itoa(os.Getuid()))); err != nil {
			return c, nil, err
		}
		// In a folder that all users share, what is there may be a trap.
		if err := private.Dir(base); err != nil {
			return c, nil, fmt.Errorf("guestbuild: the cache: %w: remove it, or set HOME", err)
		}
		for name, dir := range map[string]string{"GOCACHE": "go-build", "GOPATH": "go"} {
			if lookup(env, name) == "" {
				env = append(env, name+"="+filepath.Join(base, dir))
			}
		}
	}
	c.dir = filepath.Join(base, "weir", "guests")
	if err := os.MkdirAll(c.dir, 0o700); err != nil {
		return c, nil, fmt.Errorf("guestbuild: the cache: %w", err)
	}
	return c, env, nil
}

// get returns the file of the given name in the entry of a digest, and makes
// the entry by build where it is missing or damaged.
func (c *cache) get(ctx context.Context, digest, name string, build func(out string) error) (string, error) {
	entry := filepath.Join(c.dir, digest)
	file := filepath.Join(entry, name)
	if c.intact(entry, file) {
		return file, nil
	}
	unlock, err := c.lock(ctx, digest)
	if err != nil {
		return "", err
	}
	defer unlock()
	if c.intact(entry, file) {
		return file, nil // somebody else built it while this one waited
	}
	tmp, err := os.MkdirTemp(c.dir, "tmp-*")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(tmp)
	out := filepath.Join(tmp, name)
	if err := build(out); err != nil {
		return "", err
	}
	wasm, err := os.ReadFile(out)
	if err != nil {
		return "", err
	}
	if err := os.WriteFile(filepath.Join(tmp, sumFile), []byte(sum(wasm)), 0o600); err != nil {
		return "", err
	}
	if err := os.RemoveAll(entry); err != nil {
		return "", err
	}
	if err := os.Rename(tmp, entry); err != nil {
		return "", err
	}
	c.evict()
	return file, nil
}

// intact reports whether an entry holds what was put into it, and marks it as
// used.
func (c *cache) intact(entry, file string) bool {
	want, err := os.ReadFile(filepath.Join(entry, sumFile))
	if err != nil {
		return false
	}
	wasm, err := os.ReadFile(file)
	if err != nil || sum(wasm) != string(want) {
		return false
	}
	now := c.now()
	_ = os.Chtimes(entry, now, now)
	return true
}

// lock takes the lock of a digest. There are 256 lock files, never removed:
// removing one that another process has open would let two in.
func (c *cache) lock(ctx context.Context, digest string) (unlock func(), err error) {
	dir := filepath.Join(c.dir, "locks")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	lock, err := filelock.Wait(ctx, filepath.Join(dir, digest[:2]))
	if err != nil {
		return nil, fmt.Errorf("guestbuild: another process may be building the same guest: %w", err)
	}
	return lock.Unlock, nil
}

// evict removes the entries that were not used for the longest time until the
// rest is small enough, and what dead processes left half built. It does what
// it can: a cache that could not be trimmed is no reason to fail a build.
func (c *cache) evict() {
	list, err := os.ReadDir(c.dir)
	if err != nil {
		return
	}
	type candidate struct {
		dir  string
		size int64
		used time.Time
	}
	var all []candidate
	var total int64
	for _, e := range list {
		info, err := e.Info()
		if err != nil || !e.IsDir() || e.Name() == "locks" {
			continue
		}
		old := candidate{dir: filepath.Join(c.dir, e.Name()), used: info.ModTime()}
		if strings.HasPrefix(e.Name(), "tmp-") {
			if c.now().Sub(old.used) > recently {
				_ = os.RemoveAll(old.dir)
			}
			continue
		}
		_ = filepath.WalkDir(old.dir, func(_ string, d fs.DirEntry, err error) error {
			if err == nil && !d.IsDir() {
				if info, err := d.Info(); err == nil {
					old.size += info.Size()
				}
			}
			return nil
		})
		all, total = append(all, old), total+old.size
	}
	for total > c.max && len(all) > 0 {
		oldest := 0
		for i := range all {
			if all[i].used.Before(all[oldest].used) {
				oldest = i
			}
		}
		if c.now().Sub(all[oldest].used) <= recently {
			return
		}
		_ = os.RemoveAll(all[oldest].dir)
		total -= all[oldest].size
		all = append(all[:oldest], all[oldest+1:]...)
	}
}
