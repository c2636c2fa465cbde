package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/bus"
	"aob.dev/writ/internal/client"
)

func approvalsCommand(std IO) *cobra.Command {
	return group("approvals", "List held orders, approve and reject them",
		approvalsList(std), approvalsShow(std),
		approvalsDecide(std, catalog.DecisionApprove, "approve INTENT_ID", "Approve a held order"),
		approvalsDecide(std, catalog.DecisionReject, "reject INTENT_ID --reason TEXT", "Reject a held order"),
		approvalsDecide(std, catalog.DecisionRequestChanges, "request-changes INTENT_ID --reason TEXT", "Turn a held order down and say what should be otherwise"),
	)
}

// personFlags say who speaks, by API key, and to which gateway.
type personFlags struct {
	url, key, data string
	asJSON         bool
}

func (f *personFlags) add(cmd *cobra.Command) {
	targetFlags(cmd, &f.url, &f.data, &f.key)
	jsonFlag(cmd, &f.asJSON)
}

func (f *personFlags) client() (client.Client, error) {
	if f.key == "" {
		return client.Client{}, no(errors.New("no API key: set WRIT_API_KEY, give --key, give the context one (writ context set NAME --key-file FILE), or name the data directory of a local `writ up` with --data"))
	}
	return client.Client{URL: f.url, Key: f.key}, nil
}

func approvalsList(std IO) *cobra.Command {
	var f personFlags
	var mine bool
	var typ, after string
	var limit int
	cmd := &cobra.Command{
		Use: "list", Short: "List held orders that you may decide, and your own", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := f.client()
			if err != nil {
				return err
			}
			q := url.Values{}
			for name, value := range map[string]string{"type": typ, "after": after} {
				if value != "" {
					q.Set(name, value)
				}
			}
			if mine {
				q.Set("mine", "true")
			}
			if limit != 0 {
				q.Set("limit", strconv.Itoa(limit))
			}
			var page bus.ApprovalsReply
			if err := c.Get(cmd.Context(), "/agent/approvals?"+q.Encode(), &page); err != nil {
				return no(err)
			}
			if f.asJSON {
				return printJSON(std.Out, page)
			}
			for _, h := range page.Approvals {
				if _, err := fmt.Fprintln(std.Out, heldLine(h)); err != nil {
					return err
				}
			}
			if page.Cursor != "" {
				fmt.Fprintf(std.Err, "more: --after %s\n", page.Cursor)
			}
			return nil
		},
	}
	f.add(cmd)
	cmd.Flags().BoolVar(&mine, "mine", false, "only orders that you asked for")
	cmd.Flags().StringVar(&typ, "type", "", "only orders of this type")
	cmd.Flags().IntVar(&limit, "limit", 0, "at most so many, 1 to 100 (default 20)")
	cmd.Flags().StringVar(&after, "after", "", "go on after this cursor")
	return cmd
}

// heldLine is a held order in one line. What others wrote cannot write lines of ours.
func heldLine(h bus.HeldOrder) string {
	state := "may decide"
	if !h.MayDecide {
		state = "yours"
	}
	return strings.Join([]string{h.IntentID, h.Type, "asked by " + h.UserID, approvedOf(h), "until " + h.Deadline, state, visible(string(h.Args), "")}, "\t")
}

func approvedOf(h bus.HeldOrder) string {
	var out []string
	for _, r := range h.Rules {
		word := "waits"
		if r.Satisfied {
			word = "satisfied"
		}
		out = append(out, fmt.Sprintf("%s (of %d) %s", r.ID, r.Count, word))
	}
	return strings.Join(out, ", ")
}

func approvalsShow(std IO) *cobra.Command {
	var f personFlags
	cmd := &cobra.Command{
		Use: "show INTENT_ID", Short: "Show a held order", Args: cobra.ExactArgs(1), ValidArgsFunction: heldOrders(std),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := f.client()
			if err != nil {
				return err
			}
			var h bus.HeldOrder
			if err := c.Get(cmd.Context(), "/agent/approvals/"+url.PathEscape(args[0]), &h); err != nil {
				return no(err)
			}
			if f.asJSON {
				return printJSON(std.Out, h)
			}
			fmt.Fprintf(std.Out, "order     %s\ntype      %s\nasked by  %s\nplan      %s, step %d\nheld      %s\ndeadline  %s\n",
				h.IntentID, h.Type, visible(h.UserID, ""), h.PlanID, h.Step, h.HeldAt, h.Deadline)
			printArgs(std.Out, h.Args)
			for _, r := range h.Rules {
				fmt.Fprintf(std.Out, "rule      %s: %s (%d of %s)\n", r.ID, visible(r.Reason, ""), r.Count, strings.Join(append(r.Approvers, r.Roles...), ", "))
			}
			for _, a := range h.Approved {
				fmt.Fprintf(std.Out, "approved  %s at %s\n", a.UserID, a.At)
			}
			return nil
		},
	}
	f.add(cmd)
	return cmd
}

func approvalsDecide(std IO, decision, use, short string) *cobra.Command {
	var f personFlags
	var reason, operatorKey string
	cmd := &cobra.Command{
		Use: use, Short: short, Args: cobra.ExactArgs(1), ValidArgsFunction: heldOrders(std),
		Long: short + ", as the person whose API key it is; with --operator-key as the person\n" +
			"whose operator key it is, which signs here.",
		RunE: func(cmd *cobra.Command, args []string) error {
			said := catalog.Approve{IntentID: args[0], Decision: decision, Reason: reason}
			var result catalog.ApproveResult
			var err error
			if operatorKey != "" {
				result, err = asOperator(cmd.Context(), operatorFlags{url: f.url, key: operatorKey}, said)
			} else {
				result, err = f.decide(cmd.Context(), said)
			}
			if err != nil {
				return err
			}
			if f.asJSON {
				return printJSON(std.Out, result)
			}
			line := result.State
			if result.Code != "" {
				line += " " + string(result.Code)
			}
			if len(result.Missing) > 0 {
				line += ", more approvals wanted by " + strings.Join(result.Missing, ", ")
			}
			_, err = fmt.Fprintln(std.Out, line)
			return err
		},
	}
	f.add(cmd)
	cmd.Flags().StringVar(&operatorKey, "operator-key", "", "sign with this operator key file instead")
	cmd.Flags().StringVar(&reason, "reason", "", "why")
	if decision != catalog.DecisionApprove {
		_ = cmd.MarkFlagRequired("reason") // the flag exists
	}
	return cmd
}

func (f *personFlags) decide(ctx context.Context, said catalog.Approve) (result catalog.ApproveResult, err error) {
	c, err := f.client()
	if err != nil {
		return result, err
	}
	body := map[string]string{"decision": said.Decision}
	if said.Reason != "" {
		body["reason"] = said.Reason
	}
	if err := c.Post(ctx, "/agent/approvals/"+url.PathEscape(said.IntentID), body, &result); err != nil {
		return result, no(err)
	}
	return result, nil
}

func asOperator(ctx context.Context, f operatorFlags, said catalog.Approve) (result catalog.ApproveResult, err error) {
	o, err := f.open(ctx)
	if err != nil {
		return result, err
	}
	a, err := o.order(ctx, "hitl.approve", said)
	if err != nil {
		return result, err
	}
	return result, json.Unmarshal(a.Outcome.Result, &result)
}
