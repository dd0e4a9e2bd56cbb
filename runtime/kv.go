package runtime

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/weir-mcp/weir/abi"
	"github.com/weir-mcp/weir/runtime/store"
)

// KV is the grant kv: a store that outlives calls, and the module's instances
// and versions (abi.md "What a module can reach").
type KV struct {
	// Store keeps the values, of any number of modules. Nil makes the functions
	// exist and answer "unavailable".
	Store store.Store
	// Host is the name of the module's host in the configuration. With the
	// module's file name it says whose values these are.
	Host string
	// Scope says which callers share values; empty means [store.Principal].
	Scope store.Scope
}

// Granted is every grant that a module can be given, with nothing behind it: to
// look at a module that needs some.
func Granted() Grants { return Grants{KV: &KV{}} }

// kvAccess is what one call may reach of a store. The zero value is nothing,
// which the guest is told as "unavailable".
type kvAccess struct {
	store  store.Store
	space  store.Space
	failed bool // the operator was told of a failure in this call
}

// access finds the values that an invocation of the file works on. k may be nil.
func (k *KV) access(file string, inv *abi.Invocation) kvAccess {
	if k == nil || k.Store == nil {
		return kvAccess{}
	}
	scope := cmp.Or(k.Scope, store.Principal)
	owner, ok := ownerOf(scope, inv)
	if !ok {
		return kvAccess{}
	}
	return kvAccess{store: k.Store, space: store.Space{Host: k.Host, File: file, Scope: scope, Owner: owner}}
}

// ownerOf says for whom a call keeps values: false when that is nobody.
func ownerOf(scope store.Scope, inv *abi.Invocation) (string, bool) {
	if scope == store.Module {
		return "", true
	}
	if c := inv.Context; c != nil {
		if p := c.Principal; scope == store.Principal && p != nil && p.Type != abi.PrincipalAnonymous && p.ID != "" {
			return boundedOwner(p.Type, p.ID), true
		}
		if c.SessionID != "" {
			return boundedOwner("session", c.SessionID), true
		}
	}
	if inv.Connection != "" {
		return boundedOwner("connection", inv.Connection), true
	}
	return "", false
}

// boundedOwner keeps what names an owner short: callers choose ids, and they may
// be long.
func boundedOwner(kind, id string) string {
	const longest = 128
	if len(id) <= longest {
		return kind + ":" + id
	}
	sum := sha256.Sum256([]byte(id))
	return fmt.Sprintf("%s#%x", kind, sum)
}

// kvFuncs are the functions of the grant kv. Where there is no store they look at
// nothing else. A size is judged before the address that it goes with, and every
// address before the store is asked, so that what ends the call changes nothing.
var kvFuncs = []HostFunc{
	kvFunc(abi.ImportKVGet, "iiii", kvGet),
	kvFunc(abi.ImportKVSet, "iiiiI", kvSet),
	kvFunc(abi.ImportKVAdd, "iiIIi", kvAdd),
	kvFunc(abi.ImportKVDelete, "ii", kvDelete),
}

// kvFunc makes a host function whose first two parameters are a key.
func kvFunc(name, params string, f func(ctx context.Context, c *call, key string, m Memory, words []uint64) (int32, error)) HostFunc {
	return HostFunc{
		Module: abi.ImportModule, Name: name, Type: signature(params, "i"),
		Call: func(ctx context.Context, m Memory, words []uint64) error {
			c := callOf(ctx)
			result, err := abi.KVUnavailable, error(nil)
			switch size := uint32(words[1]); {
			case c.kv.store == nil:
			case size > abi.MaxKVKey:
				result = abi.KVTooBig
			default:
				var key []byte
				if key, err = c.kvRange(m, words[0], size); err == nil {
					result, err = f(ctx, c, string(key), m, words[2:])
				}
			}
			words[0] = uint64(uint32(result))
			if f, ends := errors.AsType[*failure](err); ends {
				return failuref(f.reason, "%s: %w", name, f.cause)
			}
			if err != nil {
				words[0] = uint64(uint32(c.kvCode(ctx, name, err)))
			}
			return nil
		},
	}
}

// kvRange is a part of memory that a kv function reads or writes.
func (c *call) kvRange(m Memory, at uint64, size uint32) ([]byte, error) {
	c.tank.charge(int(size))
	b, ok := m.Read(uint32(at), size)
	if !ok {
		return nil, failuref(abi.ReasonTrap, "%d bytes at %d are not all inside memory", size, uint32(at))
	}
	return b, nil
}

// kvCode is what the guest is told of a store's error. What the operator has to
// do something about is logged, once a call.
func (c *call) kvCode(ctx context.Context, name string, err error) int32 {
	switch {
	case errors.Is(err, store.ErrNotNumber):
		return abi.KVInvalid
	case errors.Is(err, store.ErrOverflow):
		return abi.KVTooBig
	case !c.kv.failed && ctx.Err() == nil:
		c.kv.failed = true
		c.m.logger.LogAttrs(ctx, slog.LevelWarn, "a module's store does not serve it",
			slog.String("module", c.m.name), slog.String("function", name), slog.String("scope", string(c.kv.space.Scope)), slog.Any("cause", err))
	}
	return abi.KVUnavailable
}

// longestTTL is what a longer one is cut to: a century.
const longestTTL = 100 * 365 * 24 * time.Hour

// ttlOf reads a TTL in milliseconds: 0 is none, false says that it is below.
func ttlOf(word uint64) (time.Duration, bool) {
	ms := int64(word)
	return time.Duration(min(ms, longestTTL.Milliseconds())) * time.Millisecond, ms >= 0
}

// kvGet is weir.kv_get(kp, kl, vp, vcap).
func kvGet(ctx context.Context, c *call, key string, m Memory, words []uint64) (int32, error) {
	to, err := c.kvRange(m, words[0], uint32(words[1]))
	if err != nil {
		return 0, err
	}
	value, ok, err := c.kv.store.Get(ctx, c.kv.space, key)
	switch {
	case err != nil:
		return 0, err
	case !ok:
		return abi.KVAbsent, nil
	case len(value) <= len(to):
		copy(to, value)
	}
	return int32(len(value)), nil
}

// kvSet is weir.kv_set(kp, kl, vp, vl, ttlMs).
func kvSet(ctx context.Context, c *call, key string, m Memory, words []uint64) (int32, error) {
	if uint32(words[1]) > abi.MaxKVValue {
		return abi.KVTooBig, nil
	}
	ttl, ok := ttlOf(words[2])
	if !ok {
		return abi.KVInvalid, nil
	}
	value, err := c.kvRange(m, words[0], uint32(words[1]))
	if err != nil {
		return 0, err
	}
	return 0, c.kv.store.Set(ctx, c.kv.space, key, value, ttl)
}

// kvAdd is weir.kv_add(kp, kl, delta, ttlMs, outp).
func kvAdd(ctx context.Context, c *call, key string, m Memory, words []uint64) (int32, error) {
	ttl, ok := ttlOf(words[1])
	if !ok {
		return abi.KVInvalid, nil
	}
	out, err := c.kvRange(m, words[2], 8)
	if err != nil {
		return 0, err
	}
	sum, err := c.kv.store.Add(ctx, c.kv.space, key, int64(words[0]), ttl)
	if err != nil {
		return 0, err
	}
	binary.LittleEndian.PutUint64(out, uint64(sum))
	return 0, nil
}

// kvDelete is weir.kv_delete(kp, kl).
func kvDelete(ctx context.Context, c *call, key string, _ Memory, _ []uint64) (int32, error) {
	was, err := c.kv.store.Delete(ctx, c.kv.space, key)
	if err == nil && !was {
		return abi.KVAbsent, nil
	}
	return 0, err
}
