package cli

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"aob.dev/writ/internal/upkeep"
)

func auditFsck(std IO) *cobra.Command {
	var dir string
	var asJSON bool
	cmd := &cobra.Command{
		Use: "fsck", Short: "Check a data directory: journal, ledger, blobs and what was made of them", Args: cobra.NoArgs,
		Long: "Read the whole data directory and name the first thing that is wrong: positions,\n" +
			"records and their digests, the ledger's leaves, tiles and checkpoint, blobs that\n" +
			"records name, and, where no process uses the directory, the documents that were\n" +
			"made from the journal. Nothing is written.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			show, done := bar(std, asJSON)
			h, err := upkeep.Fsck(cmd.Context(), dir, show)
			done()
			if err != nil {
				return malformed(err)
			}
			if asJSON {
				err = printJSON(std.Out, h)
			} else if h.OK {
				fmt.Fprintf(std.Out, "sound: %d records, %d leaves, %d blobs, %d documents, in %.1f s\n", h.Records, h.Leaves, h.Blobs, h.Projections, h.Seconds)
				if h.Pending > 0 {
					fmt.Fprintf(std.Out, "pending: %d records are in no checkpoint yet\n", h.Pending)
				}
				if h.Behind > 0 {
					fmt.Fprintf(std.Out, "behind: %d documents are still to be written\n", h.Behind)
				}
				if !h.Compared {
					fmt.Fprintln(std.Out, "not compared: a process uses the directory; documents are compared when none does")
				}
			} else {
				fmt.Fprintf(std.Out, "NOT SOUND: %s\n", h.FirstBad)
			}
			if err == nil && !h.OK {
				return &exitError{code: ExitNo, err: errors.New("not sound"), silent: true}
			}
			return err
		},
	}
	dataFlag(cmd, &dir)
	jsonFlag(cmd, &asJSON)
	return cmd
}
