package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"aob.dev/writ/audit"
	"aob.dev/writ/internal/datadir"
)

func auditShow(std IO) *cobra.Command {
	var dir string
	return answering(std, &cobra.Command{
		Use: "show INTENT_ID", Short: "Show an order's records", Args: cobra.ExactArgs(1),
	}, func(cmd *cobra.Command, args []string) (a answer, err error) {
		err = withArchive(cmd.Context(), dir, func(in *datadir.Archive) error {
			found, err := audit.Find(cmd.Context(), in.Records, args[0])
			if err == nil {
				a = answer{data: found}
				a.text, err = shownText(found)
			}
			return err
		})
		return a, err
	}, dataFlag(&dir))
}

func shownText(found []audit.Shown) (string, error) {
	var b strings.Builder
	for _, s := range found {
		fmt.Fprintln(&b, shownLine(s))
		if s.Order != nil {
			if err := printJSON(&b, s.Order); err != nil {
				return "", err
			}
		}
		for name, part := range s.Parts {
			if name != "order" && name != "grant" {
				fmt.Fprintf(&b, "%s: %s\n", name, part)
			}
		}
		for _, name := range slices.Sorted(maps.Keys(s.Withheld)) {
			fmt.Fprintf(&b, "%s: withheld: it was erased\n", name)
		}
	}
	return b.String(), nil
}

// shownLine is a record in one line.
func shownLine(s audit.Shown) string {
	what := s.Type
	if s.Of != nil {
		what = fmt.Sprintf("of %d", *s.Of)
	}
	return fmt.Sprintf("%6d  %s  %-8s  %-10s %-14s %-20s %s", s.Position, s.At, s.Kind, s.Tenant, what, s.Code, short(s.IntentID))
}

func auditProve(std IO) *cobra.Command {
	var dir string
	var asJSON bool
	cmd := &cobra.Command{
		Use: "prove INTENT_ID", Short: "Print the receipt, inclusion proofs and keys of one order as one JSON document", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return withArchive(cmd.Context(), dir, func(a *datadir.Archive) error {
				if err := a.Settle(cmd.Context()); err != nil {
					return no(err)
				}
				p, err := audit.Prove(cmd.Context(), a.Source, args[0])
				if err == nil {
					err = p.Check(audit.NewTrust(a.Root))
				}
				if err != nil {
					return no(err)
				}
				return printJSON(std.Out, p)
			})
		},
	}
	dataFlag(&dir)(cmd)
	jsonFlag(cmd, &asJSON)
	return cmd
}

// tailPause is how long tail waits before it looks again.
const tailPause = 500 * time.Millisecond

func auditTail(std IO) *cobra.Command {
	var dir string
	var filter audit.Filter
	var follow, asJSON bool
	cmd := &cobra.Command{
		Use: "tail", Short: "Print the record, a line each", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			next := int64(0)
			for {
				err := withArchive(cmd.Context(), dir, func(a *datadir.Archive) error {
					from := next
					next = a.Records.Next()
					return tailFrom(cmd.Context(), std, a, from, filter, asJSON)
				})
				if err != nil && (!follow || !errors.Is(err, fs.ErrNotExist)) {
					return err
				}
				if !follow {
					return nil
				}
				select {
				case <-cmd.Context().Done():
					return nil
				case <-time.After(tailPause):
				}
			}
		},
	}
	dataFlag(&dir)(cmd)
	jsonFlag(cmd, &asJSON)
	cmd.Flags().BoolVarP(&follow, "follow", "f", false, "go on with what comes")
	filterFlags(cmd, &filter)
	return cmd
}

func tailFrom(ctx context.Context, std IO, a *datadir.Archive, from int64, filter audit.Filter, asJSON bool) error {
	for s, err := range audit.Read(ctx, a.Records, from) {
		if err != nil {
			return err
		}
		if !filter.Wants(s) {
			continue
		}
		if err := printShown(std.Out, s, asJSON); err != nil {
			return err
		}
	}
	return nil
}

// printShown writes a record as one line, of data or for people.
func printShown(w io.Writer, s audit.Shown, asJSON bool) error {
	if !asJSON {
		_, err := fmt.Fprintln(w, shownLine(s))
		return err
	}
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	return enc.Encode(s)
}
