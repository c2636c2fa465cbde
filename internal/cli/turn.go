package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/spf13/cobra"

	"aob.dev/writ/internal/bus"
	"aob.dev/writ/internal/client"
)

// turnView is what a command shows of a turn, and its --json; scripts rely on
// the shape.
type turnView struct {
	PlanID   string          `json:"plan_id"`
	Status   string          `json:"status"`
	Response string          `json:"response,omitempty"`
	Data     json.RawMessage `json:"data,omitempty"`
	Failure  json.RawMessage `json:"failure,omitempty"`

	std    IO
	asJSON bool
}

// take shows a frame, and keeps what the end is made of.
func (t *turnView) take(f client.Frame) error {
	switch bus.FrameKind(f.Event) {
	case bus.FrameStatus:
		var s bus.StatusData
		if json.Unmarshal(f.Data, &s) == nil && !t.asJSON {
			fmt.Fprintln(t.std.Err, painter(t.std, t.std.Err).dim(progress(s.State, s.Message, s.Step)))
		}
	case bus.FrameAnswer:
		var a bus.AnswerData
		if err := json.Unmarshal(f.Data, &a); err != nil {
			return err
		}
		t.Response, t.Data = a.Response, a.Data
	case bus.FrameError:
		var e bus.ErrorData
		if err := json.Unmarshal(f.Data, &e); err != nil {
			return err
		}
		t.Response, t.Failure = e.Reason, e.Failure
	case bus.FrameHeld:
		t.Status, t.Data = "held", f.Data
	case bus.FrameDone:
		var d bus.DoneData
		if err := json.Unmarshal(f.Data, &d); err != nil {
			return err
		}
		t.Status = d.Status
	default:
	}
	return nil
}

// end prints how the turn ended.
func (t *turnView) end(cmd *cobra.Command, c client.Client) (err error) {
	switch {
	case t.asJSON:
		err = printJSON(t.std.Out, t)
	case t.Status == "held":
		t.sayHeld()
	default:
		_, err = fmt.Fprintln(t.std.Out, printable(t.Response))
	}
	if err != nil || t.Status == "complete" || t.Status == "held" {
		return err
	}
	if !t.asJSON {
		t.sayDenied(cmd.Context(), c)
	}
	return silent("the task was not completed")
}

// sayHeld says which order waits, who can go on with it, and how to come back.
func (t *turnView) sayHeld() {
	var held bus.HeldData
	_ = json.Unmarshal(t.Data, &held) // else less is said
	fmt.Fprintf(t.std.Err, "plan %s waits until people approve an order of it\n", t.PlanID)
	if id := held.Approval.IntentID; id != "" {
		fmt.Fprintf(t.std.Err, "look at it: writ approvals show %s\n", printable(id))
	}
	fmt.Fprintf(t.std.Err, "come back:  writ plan watch %s\n", t.PlanID)
}

// sayDenied names the orders of a plan that were refused, and how to learn why.
// That is beside the answer: where it cannot be had nothing is said.
func (t *turnView) sayDenied(ctx context.Context, c client.Client) {
	var list struct {
		Orders []struct {
			IntentID string `json:"intent_id"`
			Type     string `json:"type"`
			Code     string `json:"code"`
		} `json:"orders"`
	}
	if c.Get(ctx, "/v1/intents?verdict=deny&limit=5&plan_id="+url.QueryEscape(t.PlanID), &list) != nil {
		return
	}
	for _, o := range list.Orders {
		fmt.Fprintf(t.std.Err, "%s was refused: %s\n%s\n", printable(o.Type), printable(o.Code), explain(o.IntentID))
	}
}

// broken says how to come back to a turn that was left before its end.
func (t *turnView) broken(cmd *cobra.Command, err error) error {
	left := errors.Is(err, client.ErrCut) || cmd.Context().Err() != nil
	switch {
	case left && t.PlanID != "":
		return no(fmt.Errorf("plan %s goes on: come back with `writ plan watch %s`, or end it with `writ plan cancel %s`", t.PlanID, t.PlanID, t.PlanID))
	case left:
		return no(errors.New("left before the answer; the task may have been taken up: see writ plan list"))
	}
	return no(err)
}

// progress is one line about where a turn stands.
func progress(state, message string, step int) string {
	line := "· " + state
	if step > 0 {
		line = fmt.Sprintf("· step %d %s", step, strings.TrimPrefix(state, "step_"))
	}
	if message != "" {
		line += ": " + message
	}
	return printable(strings.ReplaceAll(line, "\n", " "))
}
