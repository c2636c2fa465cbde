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
}

func (f *personFlags) add(cmd *cobra.Command) { targetFlags(cmd, &f.url, &f.data, &f.key) }

func (f *personFlags) client() (client.Client, error) {
	if f.key == "" {
		return client.Client{}, no(errors.New("no API key: set WRIT_API_KEY, give --key, give the context one (writ context set NAME --key-file FILE), or name the data directory of a local `writ up` with --data"))
	}
	return client.Client{URL: f.url, Key: f.key}, nil
}

// get reads what the gateway says.
func (f *personFlags) get(cmd *cobra.Command, path string, into any) error {
	c, err := f.client()
	if err != nil {
		return err
	}
	return c.Get(cmd.Context(), path, into)
}

// pageFlags choose a page of a list.
type pageFlags struct {
	after string
	limit int
}

func (f *pageFlags) add(cmd *cobra.Command) {
	cmd.Flags().IntVar(&f.limit, "limit", 0, "at most so many, 1 to 100 (default 20)")
	cmd.Flags().StringVar(&f.after, "after", "", "go on after this cursor")
}

// query asks for the page, with further members that are given.
func (f *pageFlags) query(more map[string]string) string {
	q := url.Values{}
	if f.limit != 0 {
		q.Set("limit", strconv.Itoa(f.limit))
	}
	more["after"] = f.after
	for name, value := range more {
		if value != "" {
			q.Set(name, value)
		}
	}
	return "?" + q.Encode()
}

// nextPage says how to go on.
func nextPage(cursor string) string {
	if cursor == "" {
		return ""
	}
	return "more: --after " + cursor + "\n"
}

func approvalsList(std IO) *cobra.Command {
	var f personFlags
	var page pageFlags
	var mine bool
	var typ string
	cmd := answering(std, &cobra.Command{
		Use: "list", Short: "List held orders that you may decide, and your own", Args: cobra.NoArgs,
	}, func(cmd *cobra.Command, _ []string) (answer, error) {
		q := map[string]string{"type": typ}
		if mine {
			q["mine"] = "true"
		}
		var reply bus.ApprovalsReply
		err := f.get(cmd, "/agent/approvals"+page.query(q), &reply)
		a := answer{data: reply, note: nextPage(reply.Cursor)}
		for _, h := range reply.Approvals {
			a.text += heldLine(h) + "\n"
		}
		return a, err
	}, f.add, page.add)
	cmd.Flags().BoolVar(&mine, "mine", false, "only orders that you asked for")
	cmd.Flags().StringVar(&typ, "type", "", "only orders of this type")
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
	return answering(std, &cobra.Command{
		Use: "show INTENT_ID", Short: "Show a held order", Args: cobra.ExactArgs(1), ValidArgsFunction: heldOrders(std),
	}, func(cmd *cobra.Command, args []string) (answer, error) {
		var h bus.HeldOrder
		err := f.get(cmd, "/agent/approvals/"+url.PathEscape(args[0]), &h)
		return answer{data: h, text: heldText(h)}, err
	}, f.add)
}

func heldText(h bus.HeldOrder) string {
	var b strings.Builder
	fmt.Fprintf(&b, "order     %s\ntype      %s\nasked by  %s\nplan      %s, step %d\nheld      %s\ndeadline  %s\n",
		h.IntentID, h.Type, visible(h.UserID, ""), h.PlanID, h.Step, h.HeldAt, h.Deadline)
	printArgs(&b, h.Args)
	for _, r := range h.Rules {
		fmt.Fprintf(&b, "rule      %s: %s (%d of %s)\n", r.ID, visible(r.Reason, ""), r.Count, strings.Join(append(r.Approvers, r.Roles...), ", "))
	}
	for _, a := range h.Approved {
		fmt.Fprintf(&b, "approved  %s at %s\n", a.UserID, a.At)
	}
	return b.String()
}

func approvalsDecide(std IO, decision, use, short string) *cobra.Command {
	var f personFlags
	var reason, operatorKey string
	cmd := answering(std, &cobra.Command{
		Use: use, Short: short, Args: cobra.ExactArgs(1), ValidArgsFunction: heldOrders(std),
		Long: short + ", as the person whose API key it is; with --operator-key as the person\n" +
			"whose operator key it is, which signs here.",
	}, func(cmd *cobra.Command, args []string) (answer, error) {
		said := catalog.Approve{IntentID: args[0], Decision: decision, Reason: reason}
		decide := f.decide
		if operatorKey != "" {
			decide = (&operatorFlags{url: f.url, key: operatorKey}).decide
		}
		result, err := decide(cmd.Context(), said)
		line := result.State
		if result.Code != "" {
			line += " " + string(result.Code)
		}
		if len(result.Missing) > 0 {
			line += ", more approvals wanted by " + strings.Join(result.Missing, ", ")
		}
		return answer{data: result, text: line + "\n"}, err
	}, f.add)
	cmd.Flags().StringVar(&operatorKey, "operator-key", "", "sign with this operator key file instead")
	cmd.Flags().StringVar(&reason, "reason", "", "why")
	if decision != catalog.DecisionApprove {
		mustGive(cmd, "reason")
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
	err = c.Post(ctx, "/agent/approvals/"+url.PathEscape(said.IntentID), body, &result)
	return result, err
}

func (f *operatorFlags) decide(ctx context.Context, said catalog.Approve) (result catalog.ApproveResult, err error) {
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
