package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"aob.dev/writ/audit"
	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/datadir"
)

// erasable are what --parts may name.
var erasable = []string{catalog.ErasesOrder, catalog.ErasesResult, catalog.ErasesBlobs}

func orderErase(std IO) *cobra.Command {
	var f tenantFlags
	var reason string
	var parts []string
	position := int64(-1)
	cmd := answering(std, &cobra.Command{
		Use: "erase INTENT_ID --reason TEXT", Args: cobra.ExactArgs(1),
		Short: "Take an order's arguments and result out of the record, for good",
		Long: `Take an order's arguments and result out of the record, for good. The record
keeps who asked for what type of order when, what was decided, and the digests of
what is gone: it stays in the ledger, and verify says that parts are withheld.
Exit 0: the bytes are gone. Else it says what stays and why; the same command
says when it is done.`,
	}, func(cmd *cobra.Command, args []string) (answer, error) {
		switch {
		case reason == "":
			return answer{}, usage(errors.New("--reason: say why; it is recorded"))
		case len(parts) == 0 || slices.ContainsFunc(parts, func(p string) bool { return !slices.Contains(erasable, p) }):
			return answer{}, usage(fmt.Errorf("--parts: some of %v, with commas between", erasable))
		}
		if position < 0 {
			var err error
			if position, err = positionOf(cmd.Context(), f.data, args[0]); err != nil {
				return answer{}, err
			}
		}
		return f.submit(cmd.Context(), "record.erase", func(tenant string) any {
			return catalog.RecordErase{Tenant: tenant, IntentID: args[0], Position: position, Parts: parts, Reason: reason}
		})
	}, f.add)
	cmd.Flags().StringVar(&reason, "reason", "", "why; recorded, so say nothing in it that is to go")
	cmd.Flags().StringSliceVar(&parts, "parts", erasable[:2], "order, result, blobs: what is to go")
	cmd.Flags().Int64Var(&position, "position", -1, "of the order's record (default: looked up in the data directory)")
	return cmd
}

// positionOf an order: of the accepted one, or else of its first refusal.
func positionOf(ctx context.Context, dir, id string) (position int64, err error) {
	err = withArchive(ctx, dir, func(a *datadir.Archive) error {
		found, err := audit.Find(ctx, a.Records, id)
		if err != nil {
			return no(fmt.Errorf("%w: name its position with --position where the data directory is elsewhere", err))
		}
		position = found[0].Position
		for _, s := range found {
			if s.IntentID == id && (s.Code == intents.OK || s.Code == intents.ApprovalRequired) {
				position = s.Position
			}
		}
		return nil
	})
	return position, err
}
