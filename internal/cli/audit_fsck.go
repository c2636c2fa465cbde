package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"aob.dev/writ/audit"
	"aob.dev/writ/internal/upkeep"
)

func auditFsck(std IO) *cobra.Command {
	var dir string
	return answering(std, &cobra.Command{
		Use: "fsck", Short: "Check a data directory: journal, ledger, blobs and what was made of them", Args: cobra.NoArgs,
		Long: "Read the whole data directory and name the first thing that is wrong: positions,\n" +
			"records and their digests, the ledger's leaves, tiles and checkpoint, blobs that\n" +
			"records name, and, where no process uses the directory, the documents that were\n" +
			"made from the journal. Nothing is written.",
	}, func(cmd *cobra.Command, _ []string) (answer, error) {
		show, done := bar(std, cmd)
		h, err := upkeep.Fsck(cmd.Context(), dir, show)
		done()
		if err != nil {
			return answer{}, malformed(err)
		}
		return answer{data: h, text: healthText(h), end: unless(h.OK, "not sound")}, nil
	}, dataFlag(&dir))
}

func healthText(h audit.Health) string {
	if !h.OK {
		return fmt.Sprintf("NOT SOUND: %s\n", h.FirstBad)
	}
	text := fmt.Sprintf("sound: %d records, %d leaves, %d blobs, %d documents, in %.1f s\n", h.Records, h.Leaves, h.Blobs, h.Projections, h.Seconds)
	if h.Pending > 0 {
		text += fmt.Sprintf("pending: %d records are in no checkpoint yet\n", h.Pending)
	}
	if h.Behind > 0 {
		text += fmt.Sprintf("behind: %d documents are still to be written\n", h.Behind)
	}
	if !h.Compared {
		text += "not compared: a process uses the directory; documents are compared when none does\n"
	}
	return text
}
