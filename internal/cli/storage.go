package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"aob.dev/writ/internal/config"
	"aob.dev/writ/internal/datadir"
	"aob.dev/writ/upkeep"
)

// onStores is a command over the stores of the configuration.
func (c *command) onStores(run func(ctx context.Context, cfg config.Config, at datadir.DocumentsAt, args []string) (answer, error)) {
	c.withConfig(func(cfg config.Config, args []string) (answer, error) {
		at, err := documents(cfg)
		if err != nil {
			return answer{}, usage(err)
		}
		if err := datadir.Exists(cfg.Data); err != nil {
			return answer{}, malformed(err)
		}
		return run(c.Context(), cfg, at, args)
	}, "documents_auth")
}

func storageStatus(c *command) {
	c.onStores(func(ctx context.Context, cfg config.Config, at datadir.DocumentsAt, _ []string) (answer, error) {
		s, err := upkeep.ReadStorageStatus(ctx, cfg.Data, at, int64(cfg.FreeDiskMB)<<20)
		if err != nil {
			return answer{}, malformed(err)
		}
		return answer{data: s, text: render("storage.table", s), end: unless(s.Disk.Free >= s.Disk.Floor, "not well")}, nil
	})
}

func storageReindex(c *command) {
	var search bool
	c.onStores(func(ctx context.Context, cfg config.Config, at datadir.DocumentsAt, args []string) (answer, error) {
		if search {
			return reindexSearch(ctx, cfg, at, strings.Join(args, ""))
		}
		if len(args) == 0 {
			return answer{}, usage(errors.New("INDEX: name a projection, or give --search"))
		}
		removed, made, err := upkeep.Reindex(ctx, cfg.Data, at, args[0])
		if errors.Is(err, upkeep.ErrNoProjection) {
			err = usage(err)
		}
		return answer{
			data: map[string]any{"index": args[0], "removed": removed, "made": made},
			text: fmt.Sprintf("%s: %d removed, %d made\n", args[0], removed, made),
		}, err
	})
	c.Flags().BoolVar(&search, "search", false, "rebuild the search entries from the documents")
}

func reindexSearch(ctx context.Context, c config.Config, at datadir.DocumentsAt, index string) (answer, error) {
	rows, err := upkeep.ReindexSearch(ctx, c.Data, at, index)
	if errors.Is(err, upkeep.ErrNoIndex) {
		err = usage(err)
	}
	return answer{data: rows, text: render("reindexed", rows)}, err
}

func storageCollect(c *command) {
	c.onStores(func(ctx context.Context, cfg config.Config, at datadir.DocumentsAt, _ []string) (answer, error) {
		g, err := upkeep.Collect(ctx, cfg.Data, at, time.Now())
		return answer{data: g, text: fmt.Sprintf("%d expired memories, %d old documents, %d left temporary files, %d unnamed blobs removed\n", g.Expired, g.Old, g.Scopes, g.Blobs)}, err
	})
}

func storageCopy(c *command) {
	var from, to string
	var resume bool
	c.onStores(func(ctx context.Context, cfg config.Config, _ datadir.DocumentsAt, _ []string) (answer, error) {
		source, err1 := place(cfg, "--from", from)
		target, err2 := place(cfg, "--to", to)
		if err := errors.Join(err1, err2); err != nil {
			return answer{}, usage(err)
		}
		rows, err := upkeep.CopyDocuments(ctx, cfg.Data, source, target, resume)
		ok := !slices.ContainsFunc(rows, func(r upkeep.CopyReport) bool { return !r.OK })
		return answer{data: rows, text: render("copied", rows), none: "no document is in either store", end: unless(ok, "not well")}, err
	})
	c.Flags().StringVar(&from, "from", "", "data directory, or URL of an OpenSearch")
	c.Flags().StringVar(&to, "to", "", "data directory, or URL of an OpenSearch")
	c.Flags().BoolVar(&resume, "resume", false, "the target may hold documents: continue an interrupted copy")
	c.mustGive("from", "to")
}

// place reads a flag of copy. The settings of an OpenSearch come from the configuration.
func place(c config.Config, flag, value string) (upkeep.Place, error) {
	if !strings.Contains(value, "://") {
		return upkeep.Place{Dir: value, Remote: datadir.DocumentsAt{Dimension: c.VectorDimension}}, nil
	}
	c.Documents = value
	remote, err := documents(c)
	if err != nil {
		err = fmt.Errorf("%s: %w", flag, err)
	}
	return upkeep.Place{Remote: remote}, err
}
