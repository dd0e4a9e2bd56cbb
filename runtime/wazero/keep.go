package wazero

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"reflect"
	goruntime "runtime"
	"runtime/debug"
	"strings"
	"sync"

	"github.com/tetratelabs/wazero"
	"golang.org/x/sys/cpu"

	"github.com/weir-mcp/weir/internal/filelock"
	"github.com/weir-mcp/weir/internal/private"
	"github.com/weir-mcp/weir/runtime"
)

var _ runtime.Keeper = (*Engine)(nil)

// CodeKey implements [runtime.Keeper]. It is empty for the interpreter, without
// a scratch folder, and where the version of wazero cannot be told.
func (e *Engine) CodeKey() string {
	if e.stage == nil {
		return ""
	}
	return e.stage.key
}

// codeKey names the version of wazero, which stands for its machine code and
// its format, and what its compiler looks at in a processor.
func codeKey(version string) string {
	if version == "" {
		return ""
	}
	x, a := cpu.X86, cpu.ARM64
	return fmt.Sprintf("wazero %s %s/%s sse4.1 %t bmi1 %t bmi2 %t popcnt %t atomics %t",
		version, goruntime.GOOS, goruntime.GOARCH, x.HasSSE41, x.HasBMI1, x.HasBMI2, x.HasPOPCNT, a.HasATOMICS)
}

const wazeroPath = "github.com/tetratelabs/wazero"

// version is that of the wazero in this program, "" when it cannot be told: as
// the program was built, or, since tests are built without saying, by the folder
// that its source was in.
func version() string {
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, d := range info.Deps {
			switch {
			case d.Path != wazeroPath:
			case d.Replace != nil:
				return d.Replace.Version // "" for a folder, which has no version
			default:
				return d.Version
			}
		}
	}
	file, _ := goruntime.FuncForPC(reflect.ValueOf(wazero.NewCompilationCache).Pointer()).FileLine(0)
	if v := versionIn(file); v != "" {
		return v + " by source" // wazero itself does not know it then, and says so in its files
	}
	return ""
}

// nameOf names the engine, for people.
func nameOf(mode string) string {
	v, _, _ := strings.Cut(version(), " ")
	if v = strings.TrimPrefix(v, "v"); v != "" {
		v += " "
	}
	return "wazero " + v + "(" + mode + ")"
}

// versionIn takes the version out of the path of a file in the module cache.
func versionIn(file string) string {
	_, after, _ := strings.Cut(filepath.ToSlash(file), wazeroPath+"@")
	v, _, _ := strings.Cut(after, "/")
	return v
}

// stage is where code is handed to wazero, and taken from it: it only knows a
// folder, under names that it makes up. So what is kept is the file and its
// name. The folder is this process's own, and a file is in it only while wazero
// reads it; code that is kept for long is the cache's, which knows how to
// verify it.
type stage struct {
	scratch string // the folder of all stages
	key     string
	config  wazero.RuntimeConfig
	failed  sync.Once // warns

	mu     sync.Mutex
	opened bool
	err    error // of opening
	lock   *filelock.Lock
	dir    string // of this stage
	files  string // where wazero looks
	cache  wazero.CompilationCache
	linked *linked // its modules are looked for there

	// names are locks for the files that are there now: a name goes to one of
	// them. Modules that differ in nothing but what they were made from, or
	// under, have the same file.
	names [64]sync.Mutex
}

func (s *stage) lockName(name []byte) *sync.Mutex {
	return &s.names[crc32.ChecksumIEEE(name)%uint32(len(s.names))]
}

// open makes the stage when it is needed first.
func (s *stage) open(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.opened {
		s.opened = true
		s.err = s.make(ctx)
	}
	return s.err
}

func (s *stage) make(ctx context.Context) (err error) {
	if err := s.enter(ctx); err != nil {
		return err
	}
	if s.cache, s.files, err = cacheIn(s.dir); err != nil {
		return err
	}
	s.linked, err = link(ctx, s.config.WithCompilationCache(s.cache))
	return err
}

const (
	stagePrefix = "stage-"
	lockFile    = "lock"
)

// enter makes the folder of this stage, and removes those of dead processes:
// the living hold the lock in theirs.
func (s *stage) enter(ctx context.Context) error {
	if err := private.Dir(s.scratch); err != nil {
		return err
	}
	all, err := filelock.Wait(ctx, filepath.Join(s.scratch, lockFile))
	if err != nil {
		return err
	}
	defer all.Unlock()
	others, err := filepath.Glob(filepath.Join(s.scratch, stagePrefix+"*"))
	if err != nil {
		return err
	}
	for _, dir := range others {
		if lock, err := filelock.Try(filepath.Join(dir, lockFile)); lock != nil && err == nil {
			lock.Unlock() // no one is to take it: who would holds the lock of all
			_ = os.RemoveAll(dir)
		}
	}
	if s.dir, err = os.MkdirTemp(s.scratch, stagePrefix); err != nil { // mode 0700
		return err
	}
	s.lock, err = filelock.Try(filepath.Join(s.dir, lockFile))
	return err
}

// cacheIn makes a cache of wazero's in a folder, and says where in it its files
// are.
func cacheIn(dir string) (cache wazero.CompilationCache, files string, err error) {
	if cache, err = wazero.NewCompilationCacheWithDir(dir); err != nil {
		return nil, "", err
	}
	found, err := filepath.Glob(filepath.Join(dir, "wazero-*"))
	if err == nil && len(found) != 1 {
		err = fmt.Errorf("wazero has made %d folders for its code in %s", len(found), dir)
	}
	if err != nil {
		return nil, "", err
	}
	return cache, found[0], nil
}

// close frees the stage.
func (s *stage) close(ctx context.Context) (err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.linked != nil {
		err = s.linked.Close(ctx)
	}
	if s.cache != nil {
		err = errors.Join(err, s.cache.Close(ctx))
	}
	if s.lock != nil {
		s.lock.Unlock()
	}
	if s.dir != "" {
		err = errors.Join(err, os.RemoveAll(s.dir))
	}
	return err
}

// CompileToKeep implements [runtime.Keeper].
func (e *Engine) CompileToKeep(ctx context.Context, wasm []byte) (runtime.Code, []byte, error) {
	if e.stage == nil {
		code, err := e.Compile(ctx, wasm)
		return code, nil, err
	}
	kept, err := e.compileAway(wasm)
	if err == nil {
		var code runtime.Code
		if code, err = e.CompileKept(ctx, wasm, kept); err == nil {
			return code, kept, nil
		}
	}
	// Either the module is at fault, and then it fails here too, or the disk.
	code, plainErr := e.Compile(ctx, wasm)
	if plainErr != nil {
		return nil, nil, plainErr
	}
	e.stage.failed.Do(func() {
		e.logger.Warn("code cannot be kept: a module is compiled at every start", "folder", e.stage.scratch, "error", err)
	})
	return code, nil, nil
}

// compileAway compiles a module in a runtime and a folder of its own, in which
// its code is the only file, and gives name and contents of it.
func (e *Engine) compileAway(wasm []byte) (kept []byte, err error) {
	ctx := context.Background() // wazero's do not end
	if err := e.stage.open(ctx); err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp(e.stage.dir, "compile-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	cache, files, err := cacheIn(dir)
	if err != nil {
		return nil, err
	}
	r := wazero.NewRuntimeWithConfig(ctx, e.config.WithCompilationCache(cache))
	_, err = r.CompileModule(ctx, wasm)
	if err = errors.Join(err, r.Close(ctx), cache.Close(ctx)); err != nil {
		return nil, err
	}
	list, err := os.ReadDir(files)
	if err != nil {
		return nil, err
	}
	if len(list) != 1 {
		return nil, fmt.Errorf("wazero has made %d files of one module", len(list))
	}
	name := list[0].Name()
	code, err := os.ReadFile(filepath.Join(files, name))
	if err != nil {
		return nil, err
	}
	return append(append(append(make([]byte, 0, len(name)+1+len(code)), name...), 0), code...), nil
}

// CompileKept implements [runtime.Keeper].
func (e *Engine) CompileKept(_ context.Context, wasm, kept []byte) (runtime.Code, error) {
	if e.stage == nil {
		return nil, errors.New("this engine keeps no code")
	}
	name, file, ok := bytes.Cut(kept, []byte{0})
	if !ok || len(name) == 0 || bytes.ContainsAny(name, `./\:`) { // a file name, no path
		return nil, errors.New("not what this engine keeps")
	}
	ctx := context.Background() // wazero's do not end
	s := e.stage
	if err := s.open(ctx); err != nil {
		return nil, err
	}
	busy := s.lockName(name)
	busy.Lock()
	defer busy.Unlock()
	path := filepath.Join(s.files, string(name))
	if err := os.WriteFile(path, file, 0o600); err != nil {
		return nil, errors.Join(err, os.Remove(path))
	}
	compiled, err := s.linked.CompileModule(ctx, wasm)
	_ = os.Remove(path)
	if err != nil {
		return nil, err
	}
	return newCode(e, s.linked, compiled), nil
}
