// Package files stores temporary data of a step: write_temp and read_lines over the
// blobs of the ticket's step. The executors files, skills and python share that scope
// and do not call each other. The files of a step are removed when it ends; a sweep
// removes those of steps that never ended.
package files

import (
	"cmp"
	"context"
	"log/slog"
	"time"

	"aob.dev/writ/executors"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/clock"
	"aob.dev/writ/storage"
)

// Name of the executor.
const Name = "files"

// Handlers of the executor. They have no state: a file's id derives from its
// content, so the same intent twice is one file.
func Handlers(blobs storage.Blobs) map[string]executors.Handler {
	f := files{blobs}
	return map[string]executors.Handler{"write_temp": executors.WithArgs(f.write), "read_lines": executors.WithArgs(f.read)}
}

type files struct{ blobs storage.Blobs }

// write streams the data into the step's scope.
func (f files) write(ctx context.Context, o *executors.Intent, args catalog.WriteTemp) (*executors.Result, error) {
	scope, err := o.Scope()
	if err != nil {
		return nil, err
	}
	data, err := o.Content(ctx, f.blobs, "/data", args.Data)
	if err != nil {
		return nil, err
	}
	defer data.Close()
	file, err := f.blobs.Put(ctx, scope, data)
	if err != nil {
		return nil, executors.Store(err)
	}
	return &executors.Result{Value: catalog.WriteTempResult{FileID: file.ID, SizeBytes: file.Size, SHA256: file.SHA256}}, nil
}

// read gives lines of one of the step's files; another step's does not exist.
func (f files) read(ctx context.Context, o *executors.Intent, args catalog.ReadLines) (*executors.Result, error) {
	scope, err := o.Scope()
	if err != nil {
		return nil, err
	}
	r, _, err := f.blobs.Open(ctx, scope, args.FileID)
	if err != nil {
		return nil, executors.Store(err)
	}
	defer r.Close()
	lines, more, err := executors.Lines(ctx, r, args.Start, args.N)
	if err != nil {
		return nil, executors.Store(err)
	}
	return &executors.Result{Value: catalog.ReadLinesResult{Lines: lines, More: more}}, nil
}

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
