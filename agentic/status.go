package agentic

import (
	"context"
	"encoding/json"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"time"

	"aob.dev/writ/bus"
	"aob.dev/writ/internal/ratelimit"
	"aob.dev/writ/internal/visible"
	"aob.dev/writ/state/agents"
)

// stillWorking is the status of a call that takes long and has no status of its own. It is sent
// after StatusAfter, so that it appears within two seconds.
const (
	stillWorking = "still_working"
	StatusAfter  = 1500 * time.Millisecond
)

// batchTime is the time within which equal batched statuses are shown once.
const batchTime = 2 * time.Second

// builtinStatuses are available to every agent besides its own.
var builtinStatuses = map[string]agents.StatusEvent{stillWorking: {Show: "batch", Words: map[string]string{
	"en": "Still working…", "de": "Ich arbeite noch daran…", "es": "Sigo trabajando…", "fr": "J'y travaille encore…", "nb": "Jobber fortsatt…", "pt": "Ainda estou trabalhando…",
}}}

// watched makes each call of the tools report its status: the agent's status for the tool at its
// begin, or otherwise that it takes long. The tools begin with the skills of the step.
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

// event shows a status of a task according to its agent's vocabulary. Unknown statuses are
// dropped.
func (r *Run) event(own map[string]agents.StatusEvent, name string, step int) {
	e, known := own[name]
	if !known {
		e, known = builtinStatuses[name]
	}
	locale := ""
	if r.turn.About != nil {
		locale = r.turn.About.Locale
	}
	data := bus.StatusData{State: "working", Event: name, Message: guarded(words(e.Words, locale)), Step: step, PlanID: r.turn.PlanID}
	switch {
	case !known:
		r.cfg.Log.Info("a status that no agent has is not shown", slog.String("plan_id", r.turn.PlanID), slog.String("status", visible.Cut(name, 64)))
		return
	case e.Show == "suppress":
		return
	case e.Show == "transform":
		data.Event = ""
	case e.Show == "batch":
		if _, first := r.statuses.Allow(ratelimit.Caller{Name: name}); !first {
			return
		}
	}
	r.cfg.figure("status", "shown")
	r.frame(bus.FrameStatus, data)
}

// words returns the text for a locale, or for its language; otherwise English, or any.
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
