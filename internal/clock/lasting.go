package clock

import "context"

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
