package wazero

import (
	"reflect"

	"github.com/tetratelabs/wazero/api"
)

// keptStack is the largest stack of wazero's own, in bytes, that an instance
// keeps for its next call. wazero doubles one that is full, and shrinks none.
const keptStack = 256 << 10

// ownStack is the stack that wazero has made for a function, in which it keeps
// the frames of all that the function calls: a slice, which it exchanges for a
// larger one. wazero does not tell how large it is, so the slice is looked at by
// reflection. A test sees to it that the pinned wazero has it there.
type ownStack struct{ slice reflect.Value }

// ownStackOf finds the slice, in the compiler and in the interpreter.
func ownStackOf(f api.Function) ownStack {
	v := reflect.ValueOf(f)
	if v.Kind() != reflect.Pointer || v.Elem().Kind() != reflect.Struct {
		return ownStack{}
	}
	s := v.Elem().FieldByName("stack")
	if s.Kind() != reflect.Slice {
		return ownStack{}
	}
	return ownStack{s}
}

// size is what the stack takes now, in bytes; 0 where there is none.
func (s ownStack) size() uint64 {
	if !s.slice.IsValid() {
		return 0
	}
	return uint64(s.slice.Cap()) * uint64(s.slice.Type().Elem().Size())
}
