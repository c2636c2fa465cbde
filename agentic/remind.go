package agentic

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"aob.dev/writ/agentic/agents"
	"aob.dev/writ/agentic/model"
	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/bus"
)

var actionTool = model.Tool{
	Name: "action", Description: "Has the user's application do or show something. type says what, in a word that the application knows; payload what it is about.",
	Schema: json.RawMessage(`{"type":"object","properties":{"type":{"type":"string","pattern":"^[A-Za-z0-9_.-]{1,64}$"},"payload":{"type":"object"}},"required":["type"],"additionalProperties":false}`),
}

var remindTool = model.Tool{
	Name: "remind_me", Description: "Has you carry a request out later, for the user: what is the request, as you will read it then. when is a time (2026-12-01T09:00), for once, or cron of five fields (0 9 * * mon-fri), for again and again. do: list shows what is set, cancel ends the one of an id.",
	Schema: json.RawMessage(`{"type":"object","properties":{
"do":{"enum":["set","list","cancel"]},
"what":{"type":"string","minLength":1,"maxLength":4096},
"when":{"type":"string","minLength":1,"maxLength":128},
"time_zone":{"type":"string","minLength":1,"maxLength":64,"description":"such as Europe/Oslo; absent: the user's"},
"id":{"type":"string","pattern":"^[A-Za-z0-9_.-]{1,64}$","description":"of what is set"}},"additionalProperties":false}`),
}

type remindArgs struct {
	Do       string `json:"do,omitempty"` // empty: set
	What     string `json:"what,omitempty"`
	When     string `json:"when,omitempty"`
	TimeZone string `json:"time_zone,omitempty"`
	ID       string `json:"id,omitempty"`
}

// ownTools are the tools of this system that an agent names. Their calls follow each other,
// as the model has put them.
func (w *worker) ownTools(a *agents.Agent) (out []*tool) {
	for _, t := range a.Tools {
		switch {
		case t.Server != "":
		case t.Name == actionTool.Name:
			out = append(out, newTool(tool{Tool: actionTool, once: true, call: called(w.act)}))
		case t.Name == remindTool.Name:
			out = append(out, newTool(tool{Tool: remindTool, once: true, call: called(w.remind)}))
		}
	}
	return out
}

// act orders an action and, once it is recorded, has it shown. A crash in between leaves it
// in the record alone.
func (w *worker) act(ctx context.Context, label string, a catalog.Action) (any, error) {
	if result, err, ok := w.already(actionTool.Name, a, label); ok {
		return result, err
	}
	var got catalog.Accepted
	done, err := w.order(ctx, "action", a, &got)
	if err != nil {
		return nil, notAllowed(err)
	}
	w.say(progress{Action: &bus.ActionData{Type: a.Type, Payload: a.Payload, IntentID: done.IntentID}})
	return got, nil
}

// remind sets, lists or cancels what the user is to be reminded of.
func (w *worker) remind(ctx context.Context, label string, a remindArgs) (any, error) {
	switch a.Do {
	case "list":
		done, err := w.order(ctx, "schedule.list", catalog.ScheduleList{}, nil)
		return toldBy(done), notAllowed(err)
	case "cancel":
		var got catalog.Accepted
		_, err := w.order(ctx, "schedule.delete", catalog.ScheduleDelete{ID: a.ID}, &got)
		return got, notAllowed(err)
	}
	zone, err := w.zone(a.TimeZone)
	if err != nil {
		return nil, err
	}
	put := catalog.SchedulePut{ID: a.ID, Agent: w.req.Agent, Input: a.What, TimeZone: zone.String()}
	if fields := strings.Fields(a.When); len(fields) == 5 {
		put.Cron = strings.Join(fields, " ")
	} else if put.At = instant(a.When, zone); put.At == "" || a.What == "" {
		return nil, mistaken("what and when are needed; when is a time, such as 2026-12-01T09:00, or cron of five fields")
	}
	if result, err, ok := w.already("schedule.put", put, label); ok {
		return result, err
	}
	var got catalog.SchedulePutResult
	if _, err := w.order(ctx, "schedule.put", put, &got); err != nil {
		return nil, notAllowed(err)
	}
	got.Next = got.Next.In(zone)
	return got, nil
}

// zone is a time zone by its name, or the user's.
func (w *worker) zone(name string) (*time.Location, error) {
	if w.req.Turn.About != nil {
		name = cmp.Or(name, w.req.Turn.About.TimeZone)
	}
	zone, err := time.LoadLocation(name)
	if err != nil {
		return nil, mistaken("time_zone: there is none of this name: such as Europe/Oslo")
	}
	return zone, nil
}

// instant is a time as schedule.put takes it; empty: it is none.
func instant(text string, zone *time.Location) string {
	for _, form := range []string{time.RFC3339, "2006-01-02T15:04:05", "2006-01-02T15:04", "2006-01-02 15:04"} {
		if at, err := time.ParseInLocation(form, text, zone); err == nil {
			return at.Format(time.RFC3339)
		}
	}
	return ""
}

// notAllowed tells the model what its user may not, instead of ending its run.
func notAllowed(err error) error {
	var refused *OrderError
	if errors.As(err, &refused) && refused.Answer.Code == intents.RBACForbidden {
		return mistaken("the user may not do this: %s", refused.Answer.Reason)
	}
	return err
}

// recalledOwn is recalled for the tools of ownTools.
func recalledOwn(c catalog.TranscriptCall) (tool string, args any) {
	switch c.Type {
	case "action":
		var a catalog.Action
		return actionTool.Name, *decoded(c.Args, &a)
	case "schedule.put":
		var a catalog.SchedulePut
		decoded(c.Args, &a)
		return remindTool.Name, remindArgs{What: a.Input, When: cmp.Or(a.Cron, a.At), TimeZone: a.TimeZone, ID: a.ID}
	case "schedule.list":
		return remindTool.Name, remindArgs{Do: "list"}
	case "schedule.delete":
		var a catalog.ScheduleDelete
		return remindTool.Name, remindArgs{Do: "cancel", ID: decoded(c.Args, &a).ID}
	}
	return "", nil
}
