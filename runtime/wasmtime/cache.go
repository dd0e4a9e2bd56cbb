//go:build wasmtime

package wasmtime

import (
	"bytes"
	"cmp"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	goruntime "runtime"
	"slices"
	"strings"
	"time"

	"github.com/weir-mcp/weir/internal/privatedir"
	"github.com/weir-mcp/weir/runtime/meter"
)

// DefaultCacheBytes is what the cache on disk is bounded to unless
// [Options].CacheBytes says otherwise: 512 MiB, some 50 Go guests.
const DefaultCacheBytes = 512 << 20

// cache keeps compiled code in a folder. wasmtime maps what it deserialises as
// machine code and trusts it, so an entry carries a code of authentication, by a
// key that lies in the same folder: what was cut off, overwritten, or comes from
// elsewhere is not used. Against who can read and write as this user it is no
// defence, and nothing in this process could be.
//
// Several processes may use one folder: files appear whole, under names that
// depend on their contents only.
type cache struct {
	dir  string
	key  []byte
	most int64
}

const (
	keyFile   = "wasmtime.key"
	keyBytes  = 32
	entryExt  = ".cwasm"
	temporary = ".new-"
)

func openCache(dir string, most int64) (*cache, error) {
	if most < 0 {
		return nil, fmt.Errorf("a size of %d bytes is negative", most)
	}
	if err := privatedir.Make(dir); err != nil {
		return nil, err
	}
	key, err := cacheKey(filepath.Join(dir, keyFile))
	if err != nil {
		return nil, err
	}
	return &cache{dir: dir, key: key, most: cmp.Or(most, DefaultCacheBytes)}, nil
}

// cacheKey reads the key, or makes one. Of several processes that make one at
// once, the first wins.
func cacheKey(file string) ([]byte, error) {
	key, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		fresh := make([]byte, keyBytes)
		_, _ = rand.Read(fresh) // never fails
		if err := writeNew(file, fresh, os.Link); err != nil && !errors.Is(err, fs.ErrExist) {
			return nil, err
		}
		key, err = os.ReadFile(file)
	}
	if err == nil && len(key) != keyBytes {
		err = fmt.Errorf("%s does not hold a key of %d bytes: delete it", file, keyBytes)
	}
	return key, err
}

// writeNew writes a file beside its place and puts it there.
func writeNew(file string, contents []byte, put func(from, to string) error) error {
	f, err := os.CreateTemp(filepath.Dir(file), temporary+"*") // mode 0600
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	_, err = f.Write(contents)
	if err := errors.Join(err, f.Close()); err != nil {
		return err
	}
	return put(f.Name(), file)
}

// name is the file name of a module's entry. It covers everything that the code
// depends on; of the settings and the processor's features wasmtime itself
// refuses what does not fit.
func (c *cache) name(binary []byte) string {
	h := sha256.New()
	fmt.Fprintf(h, "wasmtime %s, meter %d, %s/%s\n", version, meter.Version, goruntime.GOOS, goruntime.GOARCH)
	h.Write(binary)
	return hex.EncodeToString(h.Sum(nil)) + entryExt
}

// seal is the code that authenticates an entry under its name.
func (c *cache) seal(name string, compiled []byte) []byte {
	h := hmac.New(sha256.New, c.key)
	h.Write([]byte(name))
	h.Write(compiled)
	return h.Sum(nil)
}

// get gives the code of a module, nil when there is none. An entry that is not
// the cache's own is removed and an error.
func (c *cache) get(binary []byte) ([]byte, error) {
	name := c.name(binary)
	file := filepath.Join(c.dir, name)
	entry, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if len(entry) < sha256.Size || !hmac.Equal(entry[:sha256.Size], c.seal(name, entry[sha256.Size:])) {
		return nil, errors.Join(fmt.Errorf("%s is damaged, or of another folder", file), os.Remove(file))
	}
	now := time.Now()
	_ = os.Chtimes(file, now, now) // it was used; no matter if that is not known
	return entry[sha256.Size:], nil
}

// put keeps the code of a module, and makes room for it.
func (c *cache) put(binary, compiled []byte) error {
	size := int64(len(compiled)) + sha256.Size
	if size > c.most {
		return nil
	}
	if err := c.evict(c.most - size); err != nil {
		return err
	}
	name := c.name(binary)
	entry := bytes.Join([][]byte{c.seal(name, compiled), compiled}, nil)
	return writeNew(filepath.Join(c.dir, name), entry, os.Rename)
}

// abandoned is after how long a file that was never put in place belongs to
// nobody any more.
const abandoned = time.Hour

// evict removes entries until the others fit, those first that were used longest
// ago, and what processes that were killed have left.
func (c *cache) evict(fit int64) error {
	list, err := os.ReadDir(c.dir)
	if err != nil {
		return err
	}
	var entries []fs.FileInfo
	total := int64(0)
	for _, d := range list {
		info, err := d.Info()
		switch {
		case err != nil: // another process was faster
		case strings.HasPrefix(d.Name(), temporary) && time.Since(info.ModTime()) > abandoned:
			_ = os.Remove(filepath.Join(c.dir, d.Name()))
		case strings.HasSuffix(d.Name(), entryExt):
			entries = append(entries, info)
			total += info.Size()
		}
	}
	slices.SortFunc(entries, func(a, b fs.FileInfo) int { return a.ModTime().Compare(b.ModTime()) })
	for _, info := range entries {
		if total <= fit {
			break
		}
		if err := os.Remove(filepath.Join(c.dir, info.Name())); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		total -= info.Size()
	}
	return nil
}
