package cli

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"aob.dev/writ/internal/upkeep"
)

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

func backupCommand(std IO) *cobra.Command {
	var dir string
	var keys bool
	cmd := answering(std, &cobra.Command{
		Use: "backup DIR|FILE.tar", Short: "Copy a data directory, also while writ runs on it", Args: cobra.ExactArgs(1),
		Long: "Copy ledger, journal, documents and blobs, in that order, so that no copy is behind\n" +
			"one that rests on it; journal and documents are of one moment. writ may run on the\n" +
			"directory meanwhile. Private keys go along with --keys alone.",
	}, func(cmd *cobra.Command, args []string) (answer, error) {
		b, err := upkeep.MakeBackup(cmd.Context(), dir, args[0], keys, time.Now())
		if err != nil {
			return answer{}, err
		}
		if !b.Keys {
			fmt.Fprintln(std.Err, "without keys: keep "+dir+"/keys elsewhere (or use --keys); nothing can be restored to work without them")
		} else {
			fmt.Fprintln(std.Err, "with private keys: whoever reads this backup can sign for every role; files have mode 0600")
		}
		if !b.Documents {
			fmt.Fprintln(std.Err, "without documents: they are kept elsewhere, copy them there now, after this")
		}
		return answer{
			data: backedUpAt(args[0], b),
			text: fmt.Sprintf("%d records and %d leaves of %s in %s (%d files, %d bytes)\n", b.Records, b.Leaves, b.Origin, args[0], len(b.Files), b.Bytes()),
		}, nil
	}, dataFlag(&dir))
	cmd.Flags().BoolVar(&keys, "keys", false, "copy private keys too")
	return cmd
}

func restoreCommand(std IO) *cobra.Command {
	var dir, keys string
	cmd := answering(std, &cobra.Command{
		Use: "restore DIR|FILE.tar --data DIR", Short: "Make a data directory of a backup, and check all of it", Args: cobra.ExactArgs(1),
		Long: "Make a data directory of a backup. Every file must have the digest that the backup\n" +
			"names, and where there are keys the whole is checked as `writ audit fsck` does. The\n" +
			"directory must be missing or empty, and appears when all is well.",
	}, func(cmd *cobra.Command, args []string) (answer, error) {
		r, err := upkeep.Restore(cmd.Context(), args[0], dir, keys)
		switch {
		case errors.Is(err, upkeep.ErrBackup):
			return answer{}, malformed(err)
		case err != nil:
			return answer{}, err
		case r.Health.FirstBad != nil:
			return answer{}, fmt.Errorf("what the backup holds is not sound, nothing was restored: %s", r.Health.FirstBad)
		}
		if !r.Verified {
			fmt.Fprintln(std.Err, "not verified: the backup has no keys; put them in "+dir+"/keys with mode 0600 and run: writ audit fsck --data "+dir)
		}
		if !r.Documents {
			fmt.Fprintln(std.Err, "without documents: restore them where they are kept")
		}
		return answer{text: fmt.Sprintf("%d records and %d leaves of %s in %s\n", r.Records, r.Leaves, r.Origin, dir), data: struct {
			backedUp
			Verified bool `json:"verified"`
		}{backedUpAt(dir, r.Backup), r.Verified}}, nil
	})
	cmd.Flags().StringVar(&dir, "data", "", "data directory to make; missing or empty")
	mustGive(cmd, "data")
	cmd.Flags().StringVar(&keys, "keys", "", "directory of keys, for a backup without them")
	return cmd
}
