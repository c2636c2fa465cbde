package clock

import (
	"context"
	"errors"
)

// ErrStopping is the cause of the end of contexts of requests whose process stops.
var ErrStopping = errors.New("the process stops")

// Stopping reports whether ctx has ended because its process stops.
func Stopping(ctx context.Context) bool {
	return ctx.Err() != nil && errors.Is(context.Cause(ctx), ErrStopping)
}

// UntilStop is for work of a request that goes on when its client disconnects: ctx without its
// cancellation, which ends with cancel, and with ErrStopping when ctx does.
func UntilStop(ctx context.Context) (_ context.Context, cancel context.CancelFunc) {
	return WithStop(context.WithoutCancel(ctx), ctx)
}

// WithStop is ctx, which ends with ErrStopping, too, when another context does so.
func WithStop(ctx, process context.Context) (_ context.Context, cancel context.CancelFunc) {
	out, end := context.WithCancelCause(ctx)
	leave := context.AfterFunc(process, func() {
		if Stopping(process) {
			end(ErrStopping)
		}
	})
	return out, func() {
		leave()
		end(nil)
	}
}

// OverStop is ctx, except that it does not end when its process stops.
func OverStop(ctx context.Context) (_ context.Context, cancel context.CancelFunc) {
	out, end := context.WithCancel(context.WithoutCancel(ctx))
	leave := context.AfterFunc(ctx, func() {
		if !Stopping(ctx) {
			end()
		}
	})
	return out, func() {
		leave()
		end()
	}
}

// DoUntilStop returns what fn does, or false if the process of ctx stops first; fn then goes on by
// itself. A panic of fn is the caller's.
func DoUntilStop[A any](ctx context.Context, fn func() A) (A, bool) {
	type result struct {
		value    A
		panicked any
	}
	done := make(chan result, 1)
	go func() {
		var r result
		defer func() {
			r.panicked = recover()
			done <- r
		}()
		r.value = fn()
	}()
	var r result
	select {
	case r = <-done:
	case <-ctx.Done():
		if Stopping(ctx) {
			return r.value, false
		}
		r = <-done
	}
	if r.panicked != nil {
		panic(r.panicked)
	}
	return r.value, true
}

// endKey is the context key of the time at which the process gives up waiting.
type endKey struct{}

// WithEnd sets when work under ctx must be abandoned, even if somebody waits for it: when end is
// done. end must have no values.
func WithEnd(ctx, end context.Context) context.Context { return context.WithValue(ctx, endKey{}, end) }

// Lasting is for work that outlives its caller, but not its process: ctx without its
// cancellation, which ends at the time of WithEnd. Without WithEnd it never ends.
func Lasting(ctx context.Context) context.Context {
	end, ok := ctx.Value(endKey{}).(context.Context)
	if !ok {
		return context.WithoutCancel(ctx)
	}
	return lasting{end, ctx}
}

// lasting ends as the first does, and has the values of the second.
type lasting struct {
	context.Context
	values context.Context
}

func (l lasting) Value(key any) any {
	if v := l.Context.Value(key); v != nil {
		return v
	}
	return l.values.Value(key)
}
