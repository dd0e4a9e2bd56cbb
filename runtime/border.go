package runtime

import (
	"context"
	"fmt"
)

// An engine that is shown a hostile module may panic where it should report an
// error. Nothing of the runtime calls an engine but through these functions, or
// under their recoverFault; they turn a panic into a trap, so that it ends one
// call and not the process. (Host functions are called by the engine, under
// callGuarded.)

func compileGuarded(compile func() (Code, error)) (code Code, err error) {
	defer func() {
		if p := recover(); p != nil {
			code, err = nil, fmt.Errorf("the engine panicked while compiling: %v", p)
		}
	}()
	return compile()
}

func instantiateGuarded(ctx context.Context, code Code, room Room) (instance Instance, err error) {
	defer recoverFault(&err)
	return code.Instantiate(ctx, room)
}

func callGuarded(ctx context.Context, instance Instance, export string, args ...uint64) (result uint64, err error) {
	defer recoverFault(&err)
	return instance.Call(ctx, export, args...)
}

func captureGuarded(instance Instance) (image Image, err error) {
	defer recoverFault(&err)
	return instance.Capture()
}

func restoreGuarded(instance Instance) (err error) {
	defer recoverFault(&err)
	return instance.Restore()
}

func closeGuarded(c interface{ Close(context.Context) error }) (err error) {
	defer recoverFault(&err)
	// Freeing must not depend on a context that a call has used up.
	return c.Close(context.Background())
}

func closeEngineGuarded(ctx context.Context, engine Engine) (err error) {
	defer recoverFault(&err)
	return engine.Close(ctx)
}

func trimGuarded(instance Instance) {
	var err error
	defer recoverFault(&err)
	instance.TrimStack()
}

func freeGuarded(image Image) {
	var err error
	defer recoverFault(&err)
	image.Free()
}

// guarded calls a method that has no error to give. Where it panics the result is
// otherwise.
func guarded[T any](otherwise T, method func() T) (result T) {
	defer func() {
		if recover() != nil {
			result = otherwise
		}
	}()
	return method()
}

func globalGuarded(instance Instance, export string) Global {
	return guarded(nil, func() Global { return instance.Global(export) })
}

func recoverFault(err *error) {
	if p := recover(); p != nil {
		*err = &Fault{Kind: FaultTrap, Err: fmt.Errorf("the engine panicked: %v", p)}
	}
}
