package mcp

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// TestPatience: an attempt ends when nothing is heard for its limit, however long it has run; the
// next attempt has the whole limit, and progress after the end renews nothing.
func TestPatience(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := &patience{limit: time.Minute}
		q.renew() // of no attempt
		for range 2 {
			ctx, stop := q.begin(t.Context())
			for range 10 {
				time.Sleep(59 * time.Second)
				q.renew()
			}
			began := time.Now()
			<-ctx.Done()
			if took := time.Since(began); took != time.Minute || !errors.Is(context.Cause(ctx), context.DeadlineExceeded) {
				t.Errorf("ended after %s: %v", took, context.Cause(ctx))
			}
			q.renew()
			stop()
		}
		gone, leave := context.WithCancel(t.Context())
		ctx, stop := q.begin(gone)
		defer stop()
		leave()
		if <-ctx.Done(); errors.Is(context.Cause(ctx), context.DeadlineExceeded) {
			t.Error("a caller that leaves is late")
		}
	})
}
