package wazero

import (
	"errors"
	"reflect"
	"unsafe"

	"github.com/tetratelabs/wazero/api"
)

// wazero's compiler begins each function with a stack of 10 KB, and doubles it as
// a guest recurses, up to 84 MB: it allocates the next one and copies, which
// nothing interrupts, so that a guest which only recurses holds up the host's
// collector for 100 ms. There is no option for it. So the functions of an instance
// get a stack that has its full size to begin with, of which the system gives what
// is touched. wazero does not let a stack grow that is as large, and reports the
// overflow.
//
// That reaches into a struct of wazero's that is not exported. So the struct is
// looked at when the engine is made, every function before it is changed, and
// where anything is not as expected wazero does as it likes.

// stackBytes is the size of a stack. It must be above what wazero takes as the
// size from which a stack does not grow, 50,000,000.
const stackBytes = 48 << 20

// stackGuard is left unused below a stack.
const stackGuard = 4 << 10

// stackLayout is where in a compiled function of wazero's the stack is.
type stackLayout struct {
	typ                reflect.Type // of the struct
	stack, top, bottom uintptr      // offsets
}

// stackLayoutOf finds it, nil where the struct is another than expected.
func stackLayoutOf(f api.Function) *stackLayout {
	t := reflect.TypeOf(f)
	if t == nil || t.Kind() != reflect.Pointer || t.Elem().Kind() != reflect.Struct {
		return nil
	}
	t = t.Elem()
	stack, ok1 := t.FieldByName("stack")
	top, ok2 := t.FieldByName("stackTop")
	context, ok3 := t.FieldByName("execCtx")
	if !ok1 || !ok2 || !ok3 || context.Type.Kind() != reflect.Struct {
		return nil
	}
	bottom, ok := context.Type.FieldByName("stackBottomPtr")
	if !ok || stack.Type != reflect.TypeFor[[]byte]() || top.Type != reflect.TypeFor[uintptr]() || bottom.Type != reflect.TypeFor[*byte]() {
		return nil
	}
	return &stackLayout{typ: t, stack: stack.Offset, top: top.Offset, bottom: context.Offset + bottom.Offset}
}

// fields gives the three fields of a function.
func (l *stackLayout) fields(f api.Function) (stack *[]byte, top *uintptr, bottom **byte) {
	if reflect.TypeOf(f) != reflect.PointerTo(l.typ) {
		return nil, nil, nil
	}
	p := reflect.ValueOf(f).UnsafePointer()
	return (*[]byte)(unsafe.Add(p, l.stack)), (*uintptr)(unsafe.Add(p, l.top)), (**byte)(unsafe.Add(p, l.bottom))
}

// topOf is where a stack begins, as wazero aligns it.
func topOf(stack []byte) uintptr { return uintptr(unsafe.Pointer(&stack[len(stack)-1])) &^ 15 }

var errStack = errors.New("wazero's functions have their stacks elsewhere")

// give gives a function that has not been called yet another stack.
func (l *stackLayout) give(f api.Function, b []byte) error {
	stack, top, bottom := l.fields(f)
	if stack == nil || len(*stack) == 0 || *top != topOf(*stack) || *bottom != &(*stack)[0] {
		return errStack
	}
	*stack, *top, *bottom = b, topOf(b), &b[stackGuard]
	return nil
}

// has reports whether the function runs on the stack that it was given.
func (l *stackLayout) has(f api.Function, b []byte) bool {
	stack, _, _ := l.fields(f)
	return stack != nil && len(*stack) == len(b) && &(*stack)[0] == &b[0]
}
