package files

import (
	"cmp"
	"context"
	"log/slog"
	"time"

	"aob.dev/writ/internal/clock"
	"aob.dev/writ/storage"
)

// Defaults of the sweep.
const (
	SweepEvery = 10 * time.Minute
	SweepAge   = time.Hour // scopes that nothing was written to for longer are removed
)

// Sweeper removes the files of steps that never ended.
type Sweeper struct {
	Blobs storage.Blobs
	Every time.Duration // 0: SweepEvery
	Age   time.Duration // 0: SweepAge
	Log   *slog.Logger  // nil: none
}

// Run sweeps at once and then again and again, until ctx ends; that is no
// error. A sweep that fails is logged and tried again.
func (s Sweeper) Run(ctx context.Context) error {
	s.Log = cmp.Or(s.Log, slog.New(slog.DiscardHandler))
	_ = clock.Every(ctx, cmp.Or(s.Every, SweepEvery), func() bool { // its only error is that ctx has ended
		removed, err := s.Blobs.Sweep(ctx, cmp.Or(s.Age, SweepAge))
		switch {
		case ctx.Err() != nil:
		case err != nil:
			s.Log.LogAttrs(ctx, slog.LevelError, "sweep of temporary files failed", slog.String("error", err.Error()))
		case removed > 0:
			s.Log.LogAttrs(ctx, slog.LevelInfo, "temporary files swept", slog.Int("scopes", removed))
		}
		return false
	})
	return nil
}
