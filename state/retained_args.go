package state

import (
	"encoding/json"
	"slices"
	"strings"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/schemas"
	"aob.dev/writ/storage"
)

// retainsAllBut names the texts among the arguments of a transition. The state needs the other
// arguments permanently and retains them in the summary, so that the intent can be erased: no
// transition is judged by a text. A text is a member, or a path of members such as "steps/task",
// in each element where one is an array. Intents of a Transition without texts cannot be erased.
func (m Transition) retainsAllBut(texts ...string) Transition {
	m.texts = append([]string{}, texts...)
	return m
}

// RetainsArgs reports whether intents of a type, executed by the router, retain separately what
// the state needs of them, and can be erased.
func RetainsArgs(typ string) bool { return transitions[typ].texts != nil }

// SummaryOf is what is read in place of an intent once it is erased. ok is false if later
// records depend on the intent itself, which then cannot be erased.
func SummaryOf(e *intents.Envelope, d intents.Decision) (s storage.Summary, ok bool, err error) {
	s = storage.SummaryOf(e, d.Verdict)
	if d.Verdict == intents.Deny || d.Executor != catalog.ExecutorRouter {
		return s, true, nil
	}
	if !RetainsArgs(e.Type()) {
		return s, false, nil
	}
	s.Args, err = kept(e.Args(), transitions[e.Type()].texts)
	return s, err == nil, err
}

// kept returns canonical arguments with the size of each text in its place.
func kept(args json.RawMessage, texts []string) (json.RawMessage, error) {
	tree, err := schemas.Decode(args)
	if err != nil {
		return nil, err
	}
	for _, text := range texts {
		measure(tree, strings.Split(text, "/"))
	}
	raw, err := intents.MarshalPlain(tree)
	if err != nil {
		return nil, err
	}
	return intents.Canonical(raw)
}

// measure puts "name_bytes", the length in UTF-8, in place of a text or an object.
func measure(v any, path []string) {
	switch v := v.(type) {
	case []any:
		for _, x := range v {
			measure(x, path)
		}
	case map[string]any:
		name := path[0]
		text, is := v[name].(string)
		if len(path) > 1 {
			measure(v[name], path[1:])
		} else if tree := v[name]; tree != nil {
			if !is {
				raw, _ := json.Marshal(tree) // it was decoded from JSON
				raw, _ = intents.Canonical(raw)
				text = string(raw)
			}
			delete(v, name)
			v[name+"_bytes"] = len(text)
		}
	}
}

// TextSize is the length of a text of an intent's arguments, also after the intent was erased.
func (o *Intent) TextSize(name string) int {
	var args map[string]json.RawMessage
	var text string
	n := 0
	if json.Unmarshal(o.Args, &args) != nil {
		return 0
	}
	if json.Unmarshal(args[name], &text) == nil {
		return len(text)
	}
	_ = json.Unmarshal(args[name+"_bytes"], &n) // 0: no text
	return n
}

// RemoveTexts removes every text of a plan. A required text is replaced by storage.ErasedReason.
func RemoveTexts(p *catalog.PlanView) {
	p.Task, p.Response, p.Components, p.Route = storage.ErasedReason, "", nil, p.Route.WithTexts(catalog.Route{})
	if p.Status.Ended() && p.Failure == nil {
		p.Response = storage.ErasedReason
	}
	p.Steps, p.History = slices.Clone(p.Steps), slices.Clone(p.History)
	for i := range p.Steps {
		s := &p.Steps[i]
		s.Task, s.ReturnSpec.Reason, s.FailureReason, s.Suggestion = storage.ErasedReason, storage.ErasedReason, "", ""
	}
	for i := range p.History {
		p.History[i].Reason = storage.ErasedReason
	}
	if p.Failure == nil {
		return
	}
	f := *p.Failure // the original is shared
	f.Reason = storage.ErasedReason
	if f.LastFailure != nil {
		f.LastFailure = &catalog.LastFailure{Step: f.LastFailure.Step, Reason: storage.ErasedReason}
	}
	p.Failure = &f
}

// removeTexts removes the texts of a plan after one of its intents was erased, and the positions
// of the intents that contain others of them.
func (p *plan) removeTexts() {
	RemoveTexts(&p.View)
	for _, t := range p.Tasks {
		t.Spec.Task, t.Spec.ReturnSpec.Reason = "", storage.ErasedReason
	}
	p.Texts, p.Turn = nil, nil
}

// PlanEnded reports whether the plan that an intent belongs to or names has ended, and the
// schedule that it made. It is true for an intent without a plan, and for a plan that is not in
// the state.
func (s *State) PlanEnded(o Intent) bool {
	var about struct {
		PlanID string `json:"plan_id"`
		TaskID string `json:"task_id"`
		RunID  string `json:"run_id"`
	}
	if o.Decision.Verdict != intents.Deny && o.Decision.Executor == catalog.ExecutorRouter {
		_ = json.Unmarshal(o.Args, &about) // unreadable arguments name no plan
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	if OpensRun(o) {
		about.PlanID = s.runBy(o)
	}
	for _, id := range []string{o.Context.PlanID, about.PlanID, about.RunID} {
		if p, ok := s.plans[o.Tenant+"/"+id]; ok && !p.View.Status.Ended() {
			return false
		}
	}
	t, ok := s.tasks[o.Tenant+"/"+about.TaskID]
	for _, x := range s.schedules {
		if x.Put == o.Recorded {
			return false
		}
	}
	return !ok || t.plan.View.Status.Ended()
}
