package storage

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// TestGather: more records are gathered for longer while nobody waits for those that are there, and
// one who no longer waits changes nothing.
func TestGather(t *testing.T) {
	for name, c := range map[string]struct {
		awaited func(t *testing.T, p *Progress)
		took    time.Duration
	}{
		"not awaited": {func(*testing.T, *Progress) {}, gathering + unawaited},
		"awaited before": {func(t *testing.T, p *Progress) {
			t.Helper()
			go func() { _ = p.Reach(t.Context(), 1) }() // it ends with the test
			synctest.Wait()
		}, gathering},
		"awaited meanwhile": {func(t *testing.T, p *Progress) {
			t.Helper()
			time.AfterFunc(gathering+unawaited/2, func() { _ = p.Reach(t.Context(), 1) })
		}, gathering + unawaited/2},
		"no longer awaited": {func(t *testing.T, p *Progress) {
			t.Helper()
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			if err := p.Reach(ctx, 1); err == nil {
				t.Error("reached what was not read")
			}
		}, gathering + unawaited},
		"awaited what is read": {func(t *testing.T, p *Progress) {
			t.Helper()
			if err := p.Reach(t.Context(), 0); err != nil {
				t.Error(err)
			}
		}, gathering + unawaited},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := NewProgress()
				c.awaited(t, p)
				p.Wake()
				began := time.Now()
				if err := p.Gather(t.Context()); err != nil {
					t.Fatal(err)
				}
				if took := time.Since(began); took != c.took {
					t.Errorf("it gathered for %v, and should for %v", took, c.took)
				}
			})
		})
	}
}
