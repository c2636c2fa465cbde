package clock

import (
	"context"
	"time"
)

// Sleep waits for d. It returns the error of ctx if that ends first.
func Sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Loop calls fn again and again, d after each call, until ctx ends. Its error is that of a service that
// ends with its context: none.
func Loop(ctx context.Context, d time.Duration, fn func()) error {
	_ = Every(ctx, d, func() bool { fn(); return false }) // the end of ctx
	return nil
}

// Every calls fn again and again, d after each call, until ctx ends or fn reports that it is done.
func Every(ctx context.Context, d time.Duration, fn func() (done bool)) error {
	for !fn() {
		if err := Sleep(ctx, d); err != nil {
			return err
		}
	}
	return nil
}
