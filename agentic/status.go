package agentic

import (
	"cmp"
	"context"
	"encoding/json"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"aob.dev/writ/agentic/agents"
	"aob.dev/writ/internal/bus"
)

// stillWorking is the status of a call that takes long and has none of its own, or one that
// is not shown.
const stillWorking = "still_working"

// statusAfter is when it is told: its words are there within two seconds.
const statusAfter = 1500 * time.Millisecond

// batchTime is how long equal statuses that are batched are one.
const batchTime = 2 * time.Second

// builtinStatuses are what every agent has beside its own.
var builtinStatuses = map[string]agents.StatusEvent{
	stillWorking: {Show: "batch", Words: map[string]string{
		"en": "Still working…", "de": "Ich arbeite noch daran…", "fr": "J'y travaille encore…", "es": "Sigo trabajando…", "pt": "Ainda estou trabalhando…", "nb": "Jobber fortsatt…",
	}},
}

// watched makes each call of the tools say its status: the agent's for the tool when it
// begins, or else that it takes long. The tools begin with the skills of the step.
func (w *worker) watched(tools []*tool, agent *agents.Agent) []*tool {
	for i, t := range tools {
		if t.output {
			continue
		}
		id := t.Name
		if i < len(w.req.Step.Skills) {
			id = w.req.Step.Skills[i]
		}
		event, call := agent.StatusOf(id), t.call
		shown := event != "" && agent.StatusEvents[event].Show != "suppress"
		t.call = func(ctx context.Context, label string, args json.RawMessage) (any, error) {
			if event != "" {
				w.say(progress{Event: event})
			}
			if !shown {
				slow := time.AfterFunc(statusAfter, func() { w.say(progress{Event: stillWorking}) })
				defer slow.Stop()
			}
			return call(ctx, label, args)
		}
	}
	return tools
}

// statuses are those that were shown, of those that are batched.
type statuses struct {
	mu    sync.Mutex // guards shown: tasks work side by side
	shown map[string]time.Time
}

// render is a status as the user sees it, if the user does. known: it is in the vocabulary.
func (s *statuses) render(event string, own map[string]agents.StatusEvent, locale string, now time.Time) (d bus.StatusData, show, known bool) {
	e, known := own[event]
	if !known {
		e, known = builtinStatuses[event]
	}
	d = bus.StatusData{State: "working", Event: event, Message: words(event, e.Words, locale)}
	switch e.Show {
	case "suppress":
		return d, false, known
	case "transform":
		d.Event = ""
	case "batch":
		s.mu.Lock()
		defer s.mu.Unlock()
		if last, was := s.shown[event]; was && now.Before(last.Add(batchTime)) {
			return d, false, known
		}
		if s.shown == nil {
			s.shown = make(map[string]time.Time)
		}
		s.shown[event] = now
	}
	return d, known, known
}

// words of a status in a locale, or its language; else in English, or any; else its name.
func words(event string, by map[string]string, locale string) string {
	locale = strings.ReplaceAll(locale, "_", "-")
	language, _, _ := strings.Cut(locale, "-")
	for _, want := range []string{locale, language, "en"} {
		for have, text := range by {
			if strings.EqualFold(have, want) {
				return text
			}
		}
	}
	if all := slices.Sorted(maps.Keys(by)); len(all) > 0 {
		return by[all[0]]
	}
	return strings.ReplaceAll(event, "_", " ") + "…"
}

// event shows a status of a task. What is not in the vocabulary is dropped: a task is
// believed nothing.
func (d *drive) event(name string, step int) {
	locale := ""
	if d.turn.About != nil {
		locale = d.turn.About.Locale
	}
	data, show, known := d.statuses.render(name, d.def.StatusEvents, locale, d.cfg.Now())
	if !known {
		d.cfg.Log.Info("a status that no agent has is not shown", slog.String("plan_id", d.turn.PlanID), slog.String("status", cut(name, 64)))
	}
	if show {
		data.Message, data.Step, data.PlanID = guarded(data.Message), step, d.turn.PlanID
		d.frame(bus.FrameStatus, data)
	}
}

// action shows an action of the plan's agent.
func (d *drive) action(a bus.ActionData) {
	payload := json.RawMessage(guarded(string(cmp.Or(string(a.Payload), "{}"))))
	if json.Valid(payload) && slices.ContainsFunc(d.def.Tools, func(t agents.Tool) bool { return t.ID() == actionTool.Name }) {
		d.frame(bus.FrameAction, bus.ActionData{Type: guarded(a.Type), Payload: payload, IntentID: a.IntentID})
	}
}
