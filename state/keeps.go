package state

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/storage"
)

// keepsAllBut names the texts among the arguments of a move. The state needs the other
// arguments for good, and keeps them in the summary, so that the order can be erased: no
// move is judged by a text. A text is a member, or a path of members such as "steps/task",
// in each element where one is an array. Orders of a Move without texts cannot be erased.
func (m Move) keepsAllBut(texts ...string) Move {
	m.texts = append([]string{}, texts...)
	return m
}

// Keeps says whether orders of a type, carried out by the router, keep what the state
// needs of them apart, and can be erased.
func Keeps(typ string) bool { return moves[typ].texts != nil }

// SummaryOf is what is read in place of an order once that is erased. ok is false
// where later records depend on the order itself, which cannot be erased.
func SummaryOf(e *intents.Envelope, d intents.Decision) (s storage.Summary, ok bool, err error) {
	s = storage.SummaryOf(e, d.Verdict)
	if d.Verdict == intents.Deny || d.Executor != catalog.ExecutorRouter {
		return s, true, nil
	}
	if !Keeps(e.Type()) {
		return s, false, nil
	}
	s.Args, err = kept(e.Args(), moves[e.Type()].texts)
	return s, err == nil, err
}

// kept are arguments, canonical, with the size of each text in its place.
func kept(args json.RawMessage, texts []string) (json.RawMessage, error) {
	dec := json.NewDecoder(bytes.NewReader(args))
	dec.UseNumber()
	var tree any
	if err := dec.Decode(&tree); err != nil {
		return nil, err
	}
	for _, text := range texts {
		measure(tree, strings.Split(text, "/"))
	}
	raw, err := json.Marshal(tree)
	if err != nil {
		return nil, err
	}
	return intents.Canonical(raw)
}

// measure puts "name_bytes", the length in UTF-8, in the place of a text or an object.
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
				raw, _ := json.Marshal(tree) // it was JSON
				raw, _ = intents.Canonical(raw)
				text = string(raw)
			}
			delete(v, name)
			v[name+"_bytes"] = len(text)
		}
	}
}

// TextSize is how long a text of an order's arguments is, or was before the order was
// erased.
func (o *Order) TextSize(name string) int {
	var args map[string]json.RawMessage
	var text string
	n := 0
	if json.Unmarshal(o.Args, &args) != nil {
		return 0
	}
	if json.Unmarshal(args[name], &text) == nil {
		return len(text)
	}
	_ = json.Unmarshal(args[name+"_bytes"], &n) // 0: there was none
	return n
}

// RemoveTexts removes every text of a plan. Where one is required, storage.ErasedReason
// replaces it.
func RemoveTexts(p *catalog.PlanView) {
	p.Task, p.Response, p.Components, p.Route = storage.ErasedReason, "", nil, p.Route.WithTexts(catalog.Route{})
	if p.Status == catalog.PlanComplete {
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
	f := *p.Failure // others hold the one that is here
	f.Reason = storage.ErasedReason
	if f.LastFailure != nil {
		f.LastFailure = &catalog.LastFailure{Step: f.LastFailure.Step, Reason: storage.ErasedReason}
	}
	p.Failure = &f
}

// removeTexts removes the texts of a plan one of whose orders was erased, and the
// positions of the orders that hold others of them.
func (p *plan) removeTexts() {
	RemoveTexts(&p.View)
	for _, t := range p.Tasks {
		t.Spec.Task, t.Spec.ReturnSpec.Reason = "", storage.ErasedReason
	}
	p.Texts, p.Turn = nil, nil
}

// PlanEnded says whether the plan that an order belongs to or names has ended, and the
// schedule that it made. It is true for an order of no plan, and for a plan that is not in the state.
func (s *State) PlanEnded(o Order) bool {
	var about struct {
		PlanID string `json:"plan_id"`
		TaskID string `json:"task_id"`
		RunID  string `json:"run_id"`
	}
	if o.Decision.Verdict != intents.Deny && o.Decision.Executor == catalog.ExecutorRouter {
		_ = json.Unmarshal(o.Args, &about) // arguments that cannot be read name no plan
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	if OpensRun(o) {
		about.PlanID = s.runBy(o)
	}
	for _, id := range []string{o.Context.PlanID, about.PlanID, about.RunID} {
		if p, ok := s.plans[o.Tenant+"/"+id]; ok && !final(p.View.Status) {
			return false
		}
	}
	t, ok := s.tasks[o.Tenant+"/"+about.TaskID]
	for _, x := range s.schedules {
		if x.Put == o.Recorded {
			return false
		}
	}
	return !ok || final(t.plan.View.Status)
}
