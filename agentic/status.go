package agentic

import (
	"context"
	"encoding/json"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"time"

	"aob.dev/writ/agentic/agents"
	"aob.dev/writ/internal/bus"
	"aob.dev/writ/internal/ratelimit"
)

// stillWorking is the status of a call that takes long and shows none of its own. It is told
// after StatusAfter, so that its words are there within two seconds.
const (
	stillWorking = "still_working"
	StatusAfter  = 1500 * time.Millisecond
)

// batchTime is how long equal statuses that are batched are one.
const batchTime = 2 * time.Second

// builtinStatuses are what every agent has beside its own.
var builtinStatuses = map[string]agents.StatusEvent{stillWorking: {Show: "batch", Words: map[string]string{
	"en": "Still working…", "de": "Ich arbeite noch daran…", "es": "Sigo trabajando…", "fr": "J'y travaille encore…", "nb": "Jobber fortsatt…", "pt": "Ainda estou trabalhando…",
}}}

// watched makes each call of the tools say its status: the agent's for the tool when it
// begins, or else that it takes long. The tools begin with the skills of the step.
func (w *worker) watched(tools []*tool, agent *agents.Agent) []*tool {
	for i, t := range tools {
		id, call := t.Name, t.call
		if i < len(w.req.Step.Skills) {
			id = w.req.Step.Skills[i]
		}
		event := agent.StatusOf(id)
		t.call = func(ctx context.Context, label string, args json.RawMessage) (any, error) {
			if event != "" {
				w.say(progress{Event: event})
			}
			if event == "" || agent.StatusEvents[event].Show == "suppress" {
				slow := time.AfterFunc(StatusAfter, func() { w.say(progress{Event: stillWorking}) })
				defer slow.Stop()
			}
			return call(ctx, label, args)
		}
	}
	return tools
}

// event shows a status of a task as the plan's agent says. What is not in its vocabulary is
// dropped.
func (d *drive) event(name string, step int) {
	e, known := d.def.StatusEvents[name]
	if !known {
		e, known = builtinStatuses[name]
	}
	locale := ""
	if d.turn.About != nil {
		locale = d.turn.About.Locale
	}
	data := bus.StatusData{State: "working", Event: name, Message: guarded(words(e.Words, locale)), Step: step, PlanID: d.turn.PlanID}
	switch {
	case !known:
		d.cfg.Log.Info("a status that no agent has is not shown", slog.String("plan_id", d.turn.PlanID), slog.String("status", cut(name, 64)))
		return
	case e.Show == "suppress":
		return
	case e.Show == "transform":
		data.Event = ""
	case e.Show == "batch":
		if _, first := d.batches.Allow(ratelimit.Caller{Name: name}); !first {
			return
		}
	}
	d.cfg.figure("status", "shown")
	d.frame(bus.FrameStatus, data)
}

// words are those of a locale, or of its language; else English ones, or any.
func words(by map[string]string, locale string) string {
	locale = strings.ReplaceAll(locale, "_", "-")
	language, _, _ := strings.Cut(locale, "-")
	for _, want := range append([]string{locale, language, "en"}, slices.Sorted(maps.Keys(by))...) {
		for have, text := range by {
			if strings.EqualFold(have, want) {
				return text
			}
		}
	}
	return ""
}

// action shows an action of the plan's agent.
func (d *drive) action(a bus.ActionData) {
	a.Type, a.Payload = guarded(a.Type), json.RawMessage(guarded(string(a.Payload)))
	if d.def.Has(actionTool.Name) && (len(a.Payload) == 0 || json.Valid(a.Payload)) {
		d.frame(bus.FrameAction, a)
	}
}
