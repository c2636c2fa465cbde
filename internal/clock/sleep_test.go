package clock

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// TestEvery: a call comes at once and then d after each other, until one is the last or
// the context ends.
func TestEvery(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start, calls := time.Now(), 0
		if err := Every(t.Context(), time.Minute, func() bool { calls++; return calls == 3 }); err != nil {
			t.Error(err)
		}
		if took := time.Since(start); calls != 3 || took != 2*time.Minute {
			t.Errorf("%d calls in %s", calls, took)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := Sleep(ctx, time.Hour); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
	})
}
