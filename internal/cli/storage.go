package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"aob.dev/writ/internal/config"
	"aob.dev/writ/internal/datadir"
	"aob.dev/writ/internal/upkeep"
)

// storageCommand looks after what a data directory keeps.
func storageCommand(std IO) *cobra.Command {
	return group("storage", "Look after what is kept: sizes, versions, projections, copies",
		storageStatus(std), storageMigrate(std), storageReindex(std), storageCollect(std), storageCopy(std), storageMove(std))
}

// stored is a command over the stores of a configuration.
func stored(std IO, cmd *cobra.Command, run func(ctx context.Context, c config.Config, at datadir.DocumentsAt, args []string) (answer, error)) *cobra.Command {
	load := configFlags(cmd)
	return answering(std, cmd, func(cmd *cobra.Command, args []string) (answer, error) {
		c, err := load(std.Env)
		if err != nil {
			return answer{}, malformed(err)
		}
		if err := c.Validate(); err != nil {
			return answer{}, usage(err)
		}
		at, err := documents(c)
		if err != nil {
			return answer{}, usage(err)
		}
		return run(cmd.Context(), c, at, args)
	})
}

func storageStatus(std IO) *cobra.Command {
	cmd := &cobra.Command{
		Use: "status", Short: "Tell sizes, versions, what is behind, and how much disk is free", Args: cobra.NoArgs,
		Long: "Tell sizes and versions of the stores, how many documents each index has, what the\n" +
			"ledger and the projections have still to take up, and how much disk is free. writ may\n" +
			"run meanwhile. Exit 1 below the floor of free disk.",
	}
	return stored(std, cmd, func(ctx context.Context, c config.Config, at datadir.DocumentsAt, _ []string) (answer, error) {
		s, err := upkeep.ReadStorageStatus(ctx, c.Data, at, int64(c.FreeDiskMB)<<20)
		if err != nil {
			return answer{}, malformed(err)
		}
		return answer{data: s, text: statusText(s), end: unless(s.Disk.Free >= s.Disk.Floor, "not well")}, nil
	})
}

func statusText(s upkeep.StorageStatus) string {
	return aligned(func(w io.Writer) {
		fmt.Fprintf(w, "journal\t%d records\t%d bytes\tversion %d\n", s.Journal.Count, s.Journal.Bytes, s.Journal.Version)
		fmt.Fprintf(w, "ledger\t%d leaves\t%d bytes\t%d behind\n", s.Ledger.Count, s.Ledger.Bytes, s.Ledger.Behind)
		fmt.Fprintf(w, "documents\t%d in %s\t%d bytes\t%d orders behind\n", s.Documents.Count, s.Backend, s.Documents.Bytes, s.Projections.Behind)
		fmt.Fprintf(w, "blobs\t%d in %s\t%d bytes\n", s.Blobs.Count, s.BlobsAt, s.Blobs.Bytes)
		fmt.Fprintf(w, "disk\t%d bytes free\tfloor %d\n", s.Disk.Free, s.Disk.Floor)
		for _, index := range s.Indices {
			fmt.Fprintf(w, "%s\t%d\n", index.Index, index.Documents)
		}
	})
}

func storageMigrate(std IO) *cobra.Command {
	var check bool
	cmd := &cobra.Command{
		Use: "migrate", Short: "Bring tables and indices to the version of this program; there is no way back", Args: cobra.NoArgs,
		Long: "Bring tables and indices to the version of this program, as every start does; a way\n" +
			"back is a backup alone. With --check nothing is written, writ may run, and the exit\n" +
			"code is 1 if a version is not this program's. An OpenSearch has no versions to look at.",
	}
	stored(std, cmd, func(ctx context.Context, c config.Config, at datadir.DocumentsAt, _ []string) (answer, error) {
		m, err := upkeep.Migrate(ctx, c.Data, at, check)
		text := fmt.Sprintf("journal: version %d of %d\n", m.Journal.Found, m.Journal.Known)
		if at.URL == "" {
			text += fmt.Sprintf("documents: version %d of %d\n", m.Documents.Found, m.Documents.Known)
		}
		return answer{data: m, text: text, end: unless(!check || !m.Pending, "not well")}, err
	})
	cmd.Flags().BoolVar(&check, "check", false, "only look")
	return cmd
}

func storageReindex(std IO) *cobra.Command {
	var search bool
	cmd := &cobra.Command{
		Use: "reindex INDEX | --search [INDEX]", Short: "Make a projection, or what searches go by, again; writ must not run", Args: cobra.MaximumNArgs(1),
		Long: "Make a projection of the journal again: agent_plans, agent_events or agent_orders. With\n" +
			"--search, make what searches go by again of the documents themselves: the entries of\n" +
			"SQLite, which are of all indices together, or a new index behind the alias of an\n" +
			"OpenSearch, with the mapping of this program; without INDEX, behind every alias. What\n" +
			"was cut off is ended by the next run.",
	}
	stored(std, cmd, func(ctx context.Context, c config.Config, at datadir.DocumentsAt, args []string) (answer, error) {
		if search {
			return reindexSearch(ctx, c, at, strings.Join(args, ""))
		}
		if len(args) == 0 {
			return answer{}, usage(errors.New("INDEX: name a projection, or give --search"))
		}
		removed, made, err := upkeep.Reindex(ctx, c.Data, at, args[0])
		if errors.Is(err, upkeep.ErrNoProjection) {
			err = usage(err)
		}
		return answer{
			data: map[string]any{"index": args[0], "removed": removed, "made": made},
			text: fmt.Sprintf("%s: %d removed, %d made\n", args[0], removed, made),
		}, err
	})
	cmd.Flags().BoolVar(&search, "search", false, "make again what searches go by, of the documents")
	return cmd
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

func storageCollect(std IO) *cobra.Command {
	cmd := &cobra.Command{
		Use: "gc", Short: "Remove what is expired, too old, left over or unnamed; writ must not run", Args: cobra.NoArgs,
		Long: "Remove memories that have expired, documents that their tenant's retention does not\n" +
			"keep, and temporary files of steps that never ended, as a running writ does by itself,\n" +
			"and content that no record has named for two days.\n" +
			"Journal and ledger are never touched.",
	}
	return stored(std, cmd, func(ctx context.Context, c config.Config, at datadir.DocumentsAt, _ []string) (answer, error) {
		g, err := upkeep.Collect(ctx, c.Data, at, time.Now())
		return answer{data: g, text: fmt.Sprintf("%d expired memories, %d old documents, %d left temporary files, %d unnamed blobs removed\n", g.Expired, g.Old, g.Scopes, g.Blobs)}, err
	})
}

func storageCopy(std IO) *cobra.Command {
	var from, to string
	var resume bool
	cmd := &cobra.Command{
		Use: "copy --from URL|DIR --to URL|DIR", Short: "Copy all documents to another store and compare both; writ must not run", Args: cobra.NoArgs,
		Long: "Copy the documents of all tenants of the record in --data from one store to another,\n" +
			"and compare both by count and digest, for each index and tenant. DIR is a data\n" +
			"directory, URL an OpenSearch with the settings of the configuration. writ must not run\n" +
			"on either store. Exit 1 if they differ.",
	}
	stored(std, cmd, func(ctx context.Context, c config.Config, _ datadir.DocumentsAt, _ []string) (answer, error) {
		source, err1 := place(c, "--from", from)
		target, err2 := place(c, "--to", to)
		if err := errors.Join(err1, err2); err != nil {
			return answer{}, usage(err)
		}
		rows, err := upkeep.CopyDocuments(ctx, c.Data, source, target, resume)
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
	cmd.Flags().StringVar(&from, "from", "", "data directory, or URL of an OpenSearch")
	cmd.Flags().StringVar(&to, "to", "", "data directory, or URL of an OpenSearch")
	cmd.Flags().BoolVar(&resume, "resume", false, "the target may hold documents: go on with a copy that was cut off")
	mustGive(cmd, "from", "to")
	return cmd
}

// place reads a flag of copy; settings of an OpenSearch are the configuration's.
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

func storageMove(std IO) *cobra.Command {
	var to datadir.BlobsAt
	cmd := &cobra.Command{
		Use: "move --to URL", Short: "Bring all artifacts to another store; writ must not run", Args: cobra.NoArgs,
		Long: "Copy what is kept of all tenants (cas://) from where the data directory has it to an\n" +
			"object store, or back into the directory (--to dir), and have the directory remember\n" +
			"the new place. Every digest is checked. What is in the old place stays there. One that\n" +
			"was cut off is begun again. Credentials of an S3 may be in the environment.",
	}
	stored(std, cmd, func(ctx context.Context, c config.Config, _ datadir.DocumentsAt, _ []string) (answer, error) {
		err := to.Validate()
		if to.URL == "" {
			err = errors.Join(err, errors.New("names no place"))
		}
		if err != nil {
			return answer{}, usage(fmt.Errorf("--to: %w", err))
		}
		m, err := upkeep.MoveBlobs(ctx, c.Data, to)
		return answer{data: m, text: fmt.Sprintf("%d blobs of %d bytes are in %s\n", m.Blobs, m.Bytes, m.To)}, err
	})
	cmd.Flags().StringVar(&to.URL, "to", "", "dir, or URL: nats://…, tls://… or s3://…")
	cmd.Flags().StringVar(&to.Credentials, "to-credentials", "", "file with the credentials for it")
	cmd.Flags().StringVar(&to.CA, "to-ca", "", "CA certificate file, PEM")
	mustGive(cmd, "to")
	return cmd
}
