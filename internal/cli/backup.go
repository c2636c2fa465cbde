package cli

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"aob.dev/writ/audit"
	"aob.dev/writ/upkeep"
)

// backedUp is the output of `writ admin backup --json` and `writ admin restore --json` about a backup.
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
	erasable := c.Flags().String("erasable", "", "file that then becomes the one copy of the keys of erasable parts")
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
		if *erasable == "" {
			fmt.Fprintln(c.std.Err, "without the keys of erasable parts: it cannot be restored without a copy of them that is as new; replace the one that you have with --erasable FILE")
		} else if _, err := upkeep.CopyKeys(c.Context(), c.dir, *erasable, time.Now()); err != nil {
			return answer{}, fmt.Errorf("the backup was made, and the copy of the keys of erasable parts is the old one: %w", err)
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
	erasable := c.Flags().String("erasable", "", "the newest copy of the keys of erasable parts")
	c.Flags().StringVar(&c.dir, "data", "", "data directory to make; missing or empty")
	c.mustGive("data")
	c.answer = func(args []string) (answer, error) {
		dir := c.dir
		r, err := upkeep.Restore(c.Context(), args[0], dir, *keys, *erasable)
		switch {
		case errors.Is(err, upkeep.ErrBackup):
			return answer{}, malformed(err)
		case err != nil:
			return answer{}, err
		case r.Health.FirstBad != nil && !r.Health.OnlyUnexplained():
			return answer{}, fmt.Errorf("the content of the backup is not sound, and nothing was restored: %s", r.Health.FirstBad)
		}
		for _, u := range r.Health.Unexplained {
			fmt.Fprintln(c.std.Err, "erased after the backup: "+u.Advice())
		}
		for _, l := range r.Lost {
			whose := "user " + l.User + " of tenant " + l.Tenant
			if l.User == "" {
				whose = "tenant " + l.Tenant
			}
			fmt.Fprintf(c.std.Err, "%d documents of %s were not restored (%s): their key was destroyed after the backup, as an erasure does; plans, events and indices are made from the journal\n", l.Documents, whose, strings.Join(l.Indices, ", "))
		}
		if !r.Verified {
			fmt.Fprintln(c.std.Err, "not verified: the backup has no keys; put them in "+dir+"/keys with mode 0600 and run: writ audit fsck --data "+dir)
		}
		if !r.Documents {
			fmt.Fprintln(c.std.Err, "without documents: restore them in their own store")
		}
		return answer{text: fmt.Sprintf("%d records and %d leaves of %s in %s\n", r.Records, r.Leaves, r.Origin, dir), data: struct {
			backedUp
			Verified    bool                   `json:"verified"`
			Unexplained []audit.Unexplained    `json:"unexplained,omitempty"`
			Lost        []upkeep.LostDocuments `json:"lost,omitempty"`
		}{backedUpAt(dir, r.Backup), r.Verified, r.Health.Unexplained, r.Lost}}, nil
	}
}
