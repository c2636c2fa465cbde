package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"net/url"
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
	var page pageFlags
	var status string
	cmd := answering(std, &cobra.Command{
		Use: "list", Short: "List your plans, newest first", Args: cobra.NoArgs,
	}, func(cmd *cobra.Command, _ []string) (answer, error) {
		var plans catalog.PlanListResult
		err := f.get(cmd, "/agent/plans"+page.query(map[string]string{"status": status}), &plans)
		return answer{data: plans, note: nextPage(plans.Cursor), text: aligned(func(t io.Writer) {
			for _, p := range plans.Plans {
				fmt.Fprintf(t, "%s\t%s\t%s\t%s\n", p.PlanID, p.Status, p.CreatedAt.UTC().Format(time.RFC3339), oneLine(p.Task, 60))
			}
		})}, err
	}, f.add, page.add)
	cmd.Flags().StringVar(&status, "status", "", "pending, planning, executing, replanning, complete or failed")
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
	return answering(std, &cobra.Command{
		Use: "show PLAN_ID", Short: "Show a plan, its steps and how it ended", Args: cobra.ExactArgs(1), ValidArgsFunction: planIDs(std),
	}, func(cmd *cobra.Command, args []string) (answer, error) {
		var p catalog.PlanView
		err := f.get(cmd, "/agent/plans/"+url.PathEscape(args[0]), &p)
		return answer{data: p, text: planText(p)}, err
	}, f.add)
}

func planText(p catalog.PlanView) string {
	var b strings.Builder
	fmt.Fprintf(&b, "plan      %s\nasked by  %s\nasked     %s\ntask      %s\nstatus    %s, revision %d, %d replans\n",
		p.PlanID, printable(p.UserID), p.CreatedAt.UTC().Format(time.RFC3339), printable(p.Task), p.Status, p.Revision, p.ReplanCount)
	for _, s := range p.Steps {
		line := fmt.Sprintf("step %-4d %s: %s", s.Step, s.Status, oneLine(s.Task, 100))
		if s.FailureReason != "" {
			line += " (" + oneLine(s.FailureReason, 200) + ")"
		}
		fmt.Fprintln(&b, line)
	}
	switch {
	case p.Response != "":
		fmt.Fprintf(&b, "answer    %s\n", printable(p.Response))
	case p.Failure != nil:
		fmt.Fprintf(&b, "failed    %s\n", printable(p.Failure.Reason))
	}
	return b.String()
}

func planWatch(std IO) *cobra.Command {
	var f personFlags
	var asJSON bool
	cmd := &cobra.Command{
		Use: "watch PLAN_ID", Short: "Follow a plan to its answer", Args: cobra.ExactArgs(1), ValidArgsFunction: planIDs(std),
		Long: "Follow a plan to its answer, from its beginning as far back as ten minutes: as writ run\n" +
			"shows it, with the same exit codes. Leaving does not end the plan.",
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := f.client()
			if err != nil {
				return err
			}
			t := turnView{PlanID: args[0], std: std, asJSON: asJSON}
			if err := c.Watch(cmd.Context(), args[0], t.take); err != nil {
				return t.broken(cmd, err)
			}
			return t.end(cmd, c)
		},
	}
	f.add(cmd)
	jsonFlag(cmd, &asJSON)
	return cmd
}

func planCancel(std IO) *cobra.Command {
	var f personFlags
	return answering(std, &cobra.Command{
		Use: "cancel PLAN_ID", Short: "End a plan without its answer", Args: cobra.ExactArgs(1), ValidArgsFunction: planIDs(std),
	}, func(cmd *cobra.Command, args []string) (answer, error) {
		c, err := f.client()
		if err != nil {
			return answer{}, err
		}
		var said json.RawMessage
		err = c.Delete(cmd.Context(), "/agent/plans/"+url.PathEscape(args[0]), &said)
		return answer{data: said, text: args[0] + " cancelled\n"}, err
	}, f.add)
}
