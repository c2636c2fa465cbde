package cli

import (
	"context"
	"errors"

	"aob.dev/writ/audit"
	"aob.dev/writ/internal/datadir"
	"aob.dev/writ/internal/upkeep"
	"aob.dev/writ/storage"
)

// executed runs the scripts of a bundle again, or with no bundle those of a data
// directory. With a bundle, dir may be empty: then only what needs no blob runs.
func executed(ctx context.Context, std IO, bundle, dir string) (done audit.Executed, err error) {
	if bundle == "" || dir != "" {
		err = withArchive(ctx, dir, func(a *datadir.Archive) error {
			done, err = inShadow(ctx, dir, a.Blobs, func(run audit.Runner) (audit.Executed, error) {
				if bundle == "" {
					return audit.ExecuteRecords(ctx, a.Records, run)
				}
				return executedBundle(ctx, std, bundle, run)
			})
			return err
		})
		return done, err
	}
	return inShadow(ctx, "", nil, func(run audit.Runner) (audit.Executed, error) {
		return executedBundle(ctx, std, bundle, run)
	})
}

func executedBundle(ctx context.Context, std IO, bundle string, run audit.Runner) (audit.Executed, error) {
	r, closeAll, err := openBundle(std, bundle)
	if err != nil {
		return audit.Executed{}, err
	}
	defer closeAll()
	return audit.ExecuteBundle(ctx, r, run)
}

func inShadow(ctx context.Context, dir string, blobs storage.Blobs, fn func(audit.Runner) (audit.Executed, error)) (done audit.Executed, err error) {
	s, err := upkeep.OpenShadow(ctx, dir, blobs)
	if err != nil {
		return done, no(err)
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	return fn(s.Run)
}
