package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"aob.dev/writ/audit"
	"aob.dev/writ/internal/datadir"
)

// filterFlags choose records.
func filterFlags(cmd *cobra.Command, f *audit.Filter) {
	flags := cmd.Flags()
	flags.StringVar(&f.Tenant, "tenant", "", "of this tenant")
	flags.StringVar(&f.User, "user", "", "orders of this user")
	flags.StringVar(&f.Type, "type", "", "orders of this type")
	flags.StringVar((*string)(&f.Code), "code", "", "with this code")
	flags.StringVar((*string)(&f.Kind), "kind", "", "of this kind: order, outcome, release, takeover, control")
	flags.StringVar(&f.Plan, "plan", "", "orders of this plan")
	flags.StringVar(&f.Session, "session", "", "orders of this session")
}

func auditSearch(std IO) *cobra.Command {
	var dir string
	var filter audit.Filter
	var limit int
	var asJSON bool
	cmd := &cobra.Command{
		Use: "search [TEXT …]", Short: "Find records by filters and by words in them",
		Long: "Print the records that every filter and every word fits, in order. Words are looked\nfor in all parts of a record, whatever their case.",
		RunE: func(cmd *cobra.Command, words []string) error {
			if limit < 1 {
				return usage(fmt.Errorf("--limit must be at least 1"))
			}
			filter.Words = words
			return withArchive(cmd.Context(), dir, func(a *datadir.Archive) error {
				return search(cmd, std, a, filter, limit, asJSON)
			})
		},
	}
	dataFlag(&dir)(cmd)
	jsonFlag(cmd, &asJSON)
	filterFlags(cmd, &filter)
	cmd.Flags().Var(&timeFlag{at: &filter.Since, ago: true}, "since", "from this RFC 3339 time, or from so long ago (7d, 12h)")
	cmd.Flags().Var(&timeFlag{at: &filter.Until, ago: true}, "until", "before this RFC 3339 time, or so long ago")
	cmd.Flags().IntVar(&limit, "limit", 100, "at most so many records")
	return cmd
}

// search prints what fits, a line each. Finding nothing is a no.
func search(cmd *cobra.Command, std IO, a *datadir.Archive, filter audit.Filter, limit int, asJSON bool) error {
	show, done := bar(std, cmd)
	defer done()
	found := 0
	for s, err := range audit.Read(cmd.Context(), a.Records, 0) {
		if err != nil {
			return err
		}
		if show != nil && s.Position%1000 == 0 {
			show(s.Position, a.Records.Next())
		}
		if !filter.Wants(s) {
			continue
		}
		err = printShown(std.Out, s, asJSON)
		if found++; err != nil || found == limit {
			return err
		}
	}
	if found == 0 {
		return &exitError{code: ExitNo, err: fmt.Errorf("no record fits"), silent: asJSON}
	}
	return nil
}
