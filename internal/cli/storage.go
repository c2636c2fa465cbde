package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"aob.dev/writ/internal/config"
	"aob.dev/writ/internal/datadir"
	"aob.dev/writ/internal/upkeep"
)

// onStores is a command over the stores of the configuration.
func (c *command) onStores(run func(ctx context.Context, cfg config.Config, at datadir.DocumentsAt, args []string) (answer, error)) {
	load := c.configFlags("documents_auth")
	c.answer = func(args []string) (answer, error) {
		cfg, err := load()
		if err != nil {
			return answer{}, err
		}
		at, err := documents(cfg)
		if err != nil {
			return answer{}, usage(err)
		}
		if err := datadir.Exists(cfg.Data); err != nil {
			return answer{}, malformed(err)
		}
		return run(c.Context(), cfg, at, args)
	}
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
	var b strings.Builder
	for _, r := range rows {
		fmt.Fprintf(&b, "%s: %d documents\n", cmp.Or(r.Index, "all indices"), r.Documents)
	}
	return answer{data: rows, text: b.String()}, err
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
		ok := true
		var b strings.Builder
		for _, r := range rows {
			word := "the same"
			if !r.OK {
				word, ok = "DIFFERENT", false
			}
			if r.Documents > 0 || !r.OK {
				fmt.Fprintf(&b, "%s\t%s\t%d of %d documents\t%s\n", r.Tenant, r.Index, r.Copied, r.Documents, word)
			}
		}
		return answer{data: rows, text: b.String(), end: unless(ok, "not well")}, err
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

func storageMove(c *command) {
	var to datadir.BlobsAt
	c.onStores(func(ctx context.Context, cfg config.Config, _ datadir.DocumentsAt, _ []string) (answer, error) {
		err := to.Validate()
		if to.URL == "" {
			err = errors.Join(err, errors.New("it names no place"))
		}
		if err != nil {
			return answer{}, usage(fmt.Errorf("--to: %w", err))
		}
		m, err := upkeep.MoveBlobs(ctx, cfg.Data, to)
		return answer{data: m, text: fmt.Sprintf("%d blobs of %d bytes are in %s\n", m.Blobs, m.Bytes, m.To)}, err
	})
	c.Flags().StringVar(&to.URL, "to", "", "dir, or URL: nats://…, tls://… or s3://…")
	c.Flags().StringVar(&to.Credentials, "to-credentials", "", "file with the credentials for that store")
	c.Flags().StringVar(&to.CA, "to-ca", "", "CA certificate file for that store, PEM")
	c.mustGive("to")
}

// backedUp is what `writ backup --json` and `writ restore --json` print of a backup.
type backedUp struct {
	Path      string    `json:"path"`
	Origin    string    `json:"origin"`
	At        time.Time `json:"at"`
	Records   int64     `json:"records"`
	Leaves    int64     `json:"leaves"`
	Files     int       `json:"files"`
	Bytes     int64     `json:"bytes"`
	Documents bool      `json:"documents"`
	Keys      bool      `json:"keys"`
}

func backedUpAt(path string, b upkeep.Backup) backedUp {
	return backedUp{path, b.Origin, b.At, b.Records, b.Leaves, len(b.Files), b.Bytes(), b.Documents, b.Keys}
}

func backupCommand(c *command) {
	c.dataFlag()
	keys := c.Flags().Bool("keys", false, "copy private keys, too")
	c.answer = func(args []string) (answer, error) {
		b, err := upkeep.MakeBackup(c.Context(), c.dir, args[0], *keys, time.Now())
		if err != nil {
			return answer{}, err
		}
		if !b.Keys {
			fmt.Fprintln(c.std.Err, "without keys: keep a copy of "+c.dir+"/keys elsewhere, or use --keys; a restored directory does not work without them")
		} else {
			fmt.Fprintln(c.std.Err, "with private keys: anybody who can read this backup can sign for every role; its files have mode 0600")
		}
		if !b.Documents {
			fmt.Fprintln(c.std.Err, "without documents: they are in another store; back them up there now, after this backup")
		}
		return answer{
			data: backedUpAt(args[0], b),
			text: fmt.Sprintf("%d records and %d leaves of %s in %s (%d files, %d bytes)\n", b.Records, b.Leaves, b.Origin, args[0], len(b.Files), b.Bytes()),
		}, nil
	}
}

func restoreCommand(c *command) {
	keys := c.Flags().String("keys", "", "directory of keys, for a backup without them")
	c.Flags().StringVar(&c.dir, "data", "", "data directory to make; missing or empty")
	c.mustGive("data")
	c.answer = func(args []string) (answer, error) {
		dir := c.dir
		r, err := upkeep.Restore(c.Context(), args[0], dir, *keys)
		switch {
		case errors.Is(err, upkeep.ErrBackup):
			return answer{}, malformed(err)
		case err != nil:
			return answer{}, err
		case r.Health.FirstBad != nil:
			return answer{}, fmt.Errorf("the content of the backup is not sound, and nothing was restored: %s", r.Health.FirstBad)
		}
		if !r.Verified {
			fmt.Fprintln(c.std.Err, "not verified: the backup has no keys; put them in "+dir+"/keys with mode 0600 and run: writ audit fsck --data "+dir)
		}
		if !r.Documents {
			fmt.Fprintln(c.std.Err, "without documents: restore them in their own store")
		}
		return answer{text: fmt.Sprintf("%d records and %d leaves of %s in %s\n", r.Records, r.Leaves, r.Origin, dir), data: struct {
			backedUp
			Verified bool `json:"verified"`
		}{backedUpAt(dir, r.Backup), r.Verified}}, nil
	}
}
