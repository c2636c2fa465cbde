package cli

import (
	"encoding/json"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"aob.dev/writ/intents/catalog"
)

func planCommand(std IO) *cobra.Command {
	return group("plan", "List plans, look at them, follow and cancel them", planList(std), planShow(std), planWatch(std), planCancel(std))
}

func planList(std IO) *cobra.Command {
	var f personFlags
	var status, after string
	var limit int
	cmd := &cobra.Command{
		Use: "list", Short: "List your plans, newest first", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := f.client()
			if err != nil {
				return err
			}
			q := url.Values{}
			if status != "" {
				q.Set("status", status)
			}
			if after != "" {
				q.Set("after", after)
			}
			if limit != 0 {
				q.Set("limit", strconv.Itoa(limit))
			}
			var page catalog.PlanListResult
			if err := c.Get(cmd.Context(), "/agent/plans?"+q.Encode(), &page); err != nil {
				return no(err)
			}
			if f.asJSON {
				return printJSON(std.Out, page)
			}
			t := table(std.Out)
			for _, p := range page.Plans {
				fmt.Fprintf(t, "%s\t%s\t%s\t%s\n", p.PlanID, p.Status, p.CreatedAt.UTC().Format(time.RFC3339), oneLine(p.Task, 60))
			}
			flush(t)
			if page.Cursor != "" {
				fmt.Fprintf(std.Err, "more: --after %s\n", page.Cursor)
			}
			return nil
		},
	}
	f.add(cmd)
	cmd.Flags().StringVar(&status, "status", "", "pending, planning, executing, replanning, complete or failed")
	cmd.Flags().IntVar(&limit, "limit", 0, "at most so many, 1 to 100 (default 20)")
	cmd.Flags().StringVar(&after, "after", "", "go on after this cursor")
	return cmd
}

// oneLine is the beginning of a text that others wrote.
func oneLine(s string, most int) string {
	r := []rune(printable(strings.Join(strings.Fields(s), " ")))
	if len(r) > most {
		return string(r[:most-1]) + "…"
	}
	return string(r)
}

func planShow(std IO) *cobra.Command {
	var f personFlags
	cmd := &cobra.Command{
		Use: "show PLAN_ID", Short: "Show a plan, its steps and how it ended", Args: cobra.ExactArgs(1), ValidArgsFunction: planIDs(std),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := f.client()
			if err != nil {
				return err
			}
			var p catalog.PlanView
			if err := c.Get(cmd.Context(), "/agent/plans/"+url.PathEscape(args[0]), &p); err != nil {
				return no(err)
			}
			if f.asJSON {
				return printJSON(std.Out, p)
			}
			return printPlan(std, p)
		},
	}
	f.add(cmd)
	return cmd
}

func printPlan(std IO, p catalog.PlanView) error {
	fmt.Fprintf(std.Out, "plan      %s\nasked by  %s\nasked     %s\ntask      %s\nstatus    %s, revision %d, %d replans\n",
		p.PlanID, printable(p.UserID), p.CreatedAt.UTC().Format(time.RFC3339), printable(p.Task), p.Status, p.Revision, p.ReplanCount)
	for _, s := range p.Steps {
		line := fmt.Sprintf("step %-4d %s: %s", s.Step, s.Status, oneLine(s.Task, 100))
		if s.FailureReason != "" {
			line += " (" + oneLine(s.FailureReason, 200) + ")"
		}
		fmt.Fprintln(std.Out, line)
	}
	switch {
	case p.Response != "":
		fmt.Fprintf(std.Out, "answer    %s\n", printable(p.Response))
	case p.Failure != nil:
		fmt.Fprintf(std.Out, "failed    %s\n", printable(p.Failure.Reason))
	}
	return nil
}

func planWatch(std IO) *cobra.Command {
	var f personFlags
	cmd := &cobra.Command{
		Use: "watch PLAN_ID", Short: "Follow a plan to its answer", Args: cobra.ExactArgs(1), ValidArgsFunction: planIDs(std),
		Long: "Follow a plan to its answer, from its beginning as far back as ten minutes: as writ run\n" +
			"shows it, with the same exit codes. Leaving does not end the plan.",
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := f.client()
			if err != nil {
				return err
			}
			t := newTurnView(std, f.asJSON)
			t.PlanID = args[0]
			if err := c.Watch(cmd.Context(), args[0], t.take); err != nil {
				return t.broken(cmd, err)
			}
			return t.end(cmd, c)
		},
	}
	f.add(cmd)
	return cmd
}

func planCancel(std IO) *cobra.Command {
	var f personFlags
	cmd := &cobra.Command{
		Use: "cancel PLAN_ID", Short: "End a plan without its answer", Args: cobra.ExactArgs(1), ValidArgsFunction: planIDs(std),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := f.client()
			if err != nil {
				return err
			}
			var said json.RawMessage
			if err := c.Delete(cmd.Context(), "/agent/plans/"+url.PathEscape(args[0]), &said); err != nil {
				return no(err)
			}
			if f.asJSON {
				return printJSON(std.Out, said)
			}
			_, err = fmt.Fprintln(std.Out, args[0], "cancelled")
			return err
		},
	}
	f.add(cmd)
	return cmd
}
