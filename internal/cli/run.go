package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strings"

	"aob.dev/writ/bus"
	"aob.dev/writ/internal/client"
	"aob.dev/writ/internal/durable"
)

func runCommand(c *command) {
	c.personFlags()
	c.jsonFlag()
	agent := c.agentFlag("agent that carries the request out")
	c.outFlag("", "file for the complete data of the answer")
	c.run = func(args []string) error {
		return c.turn("", func(to client.Client, t *turnView) (err error) {
			to.Agent = *agent
			t.PlanID, err = to.Run(c.Context(), args[0], t.Take)
			if err == nil && c.out != "" && t.Status == "complete" {
				err = saveData(c.Context(), to, t.Data, c.out)
			}
			return err
		})
	}
}

// turn follows a turn of a plan to its end, and prints that.
func (c *command) turn(planID string, follow func(client.Client, *turnView) error) error {
	to, err := c.client()
	if err != nil {
		return err
	}
	t := c.newTurn(planID)
	if !c.asJSON && terminal(c.std.Out) {
		t.stream()
	}
	if err := follow(to, &t); err != nil {
		return t.broken(c.Context(), err)
	}
	return t.end(c.Context(), to)
}

// newTurn shows the progress of a turn, unless JSON is asked for.
func (c *command) newTurn(planID string) turnView {
	t := turnView{Turn: client.Turn{PlanID: planID}, std: c.std, asJSON: c.asJSON}
	if !c.asJSON {
		t.Progress = func(s bus.StatusData) {
			fmt.Fprintln(c.std.Err, painter(c.std, c.std.Err).dim(progress(s)))
		}
		t.ChildContent = func(d bus.ContentData) {
			if text := strings.Join(strings.Fields(d.Text), " "); text != "" {
				fmt.Fprintln(c.std.Err, painter(c.std, c.std.Err).dim(printable("· "+d.Agent+": "+text)))
			}
		}
	}
	return t
}

// saveData writes the data of an answer to a file: the data itself, or the artifact
// that it names. The file is complete or does not appear.
func saveData(ctx context.Context, c client.Client, data json.RawMessage, to string) error {
	if len(data) == 0 {
		return errors.New("the answer has no data")
	}
	err := durable.Stream(to, func(f io.Writer) error {
		var a bus.ArtifactData
		if json.Unmarshal(data, &a) == nil && a.Artifact != "" {
			return c.Artifact(ctx, a.Artifact, f)
		}
		_, err := f.Write(append(data, '\n'))
		return err
	})
	if err != nil {
		return fmt.Errorf("--out: %w", err)
	}
	return nil
}

// turnView is a command's view of a turn. Scripts rely on the shape of its JSON.
type turnView struct {
	client.Turn
	std     IO
	asJSON  bool
	printed string // of the answer, so far
}

// end prints how the turn ended.
func (t *turnView) end(ctx context.Context, c client.Client) (err error) {
	switch {
	case t.asJSON:
		err = printJSON(t.std.Out, t.Turn)
	case t.Status != "held" || t.Response != "":
		rest, begun := strings.CutPrefix(t.Response, t.printed)
		if !begun {
			rest = "\n" + rest
		}
		_, err = fmt.Fprintln(t.std.Out, printable(rest))
	}
	if t.Status == "held" && !t.asJSON {
		t.sayPendingApproval()
	}
	if err != nil || t.Status == "complete" || t.Status == "needs_input" || t.Status == "held" {
		return err
	}
	if !t.asJSON {
		t.sayDenied(ctx, c)
	}
	return silent("the task was not completed")
}

// sayPendingApproval prints why an intent is pending approval, and how to return to the plan.
func (t *turnView) sayPendingApproval() {
	var held bus.PendingApprovalData
	_ = json.Unmarshal(t.Data, &held) // if it cannot be read, the intent is not named
	waits, show := "waits for people to approve one of its intents", "show the intent: writ approvals show "+held.Approval.IntentID
	if held.Approval.Hint != "" {
		waits, show = "waits: "+held.Approval.Reason, held.Approval.Hint
	}
	fmt.Fprintf(t.std.Err, "plan %s %s\n", t.PlanID, printable(waits))
	if held.Approval.IntentID != "" {
		fmt.Fprintln(t.std.Err, printable(show))
	}
	fmt.Fprintf(t.std.Err, "follow the plan: writ plan watch %s\n", t.PlanID)
}

// sayDenied names the refused intents of a plan, and how to see why they were refused.
// If they cannot be read, it prints nothing.
func (t *turnView) sayDenied(ctx context.Context, c client.Client) {
	var list struct {
		Intents []struct {
			IntentID string `json:"intent_id"`
			Type     string `json:"type"`
			Code     string `json:"code"`
		} `json:"intents"`
	}
	if c.Get(ctx, "/v1/intents?verdict=deny&limit=5&plan_id="+url.QueryEscape(t.PlanID), &list) != nil {
		return
	}
	for _, o := range list.Intents {
		fmt.Fprintf(t.std.Err, "%s was refused: %s\n%s\n", printable(o.Type), printable(o.Code), explain(o.IntentID))
	}
}

// broken prints how to return to a turn that was left before its end.
func (t *turnView) broken(ctx context.Context, err error) error {
	left := errors.Is(err, client.ErrCut) || ctx.Err() != nil
	switch {
	case left && t.PlanID != "":
		return fmt.Errorf("plan %s is still running: follow it with `writ plan watch %s`, or end it with `writ plan cancel %s`", t.PlanID, t.PlanID, t.PlanID)
	case left:
		return errors.New("the connection ended before the answer; the task may have been accepted: see writ plan list")
	}
	return err
}

// progress is one line about the state of a turn.
func progress(s bus.StatusData) string {
	line := "· " + s.State
	if s.State == "working" {
		line, s.Message = "· "+s.Message, ""
	} else if s.Step > 0 {
		line = fmt.Sprintf("· step %d %s", s.Step, strings.TrimPrefix(s.State, "step_"))
	}
	if s.Message != "" {
		line += ": " + s.Message
	}
	return printable(strings.ReplaceAll(line, "\n", " "))
}
