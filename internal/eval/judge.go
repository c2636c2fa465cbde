package eval

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// Outcome is the outcome of a message, from the record and the answer.
type Outcome struct {
	PlanID string   `json:"plan_id,omitempty"`
	Status string   `json:"status"` // of the plan
	Answer string   `json:"answer"` // or the error shown to the user
	Agents []string `json:"agents"` // agents that worked on it, besides writ's own
	Tools  []string `json:"tools"`  // in the order of the calls
}

// complete is the status of a plan that was carried out.
const complete = "complete"

// Judge lists the deviations from the case.
func (c Case) Judge(s Outcome) (wrong []string) {
	say := func(format string, a ...any) { wrong = append(wrong, fmt.Sprintf(format, a...)) }
	switch {
	case c.Refused && s.Status != complete && s.Status != "failed", !c.Refused && s.Status != complete:
		say("the plan is %s: %s", s.Status, s.Answer)
	case c.Refused && s.Status == complete && len(s.Tools) > 0:
		say("was done: %s", strings.Join(s.Tools, ", "))
	}
	if c.Agents != nil && !c.Routed(s) {
		say("agents: %s, not %s", listed(s.Agents), listed(c.Agents))
	}
	if c.Tools != nil {
		wrong = append(wrong, c.Tools.judge(s.Tools)...)
	}
	for _, text := range c.Answer.Contains {
		if !strings.Contains(strings.ToLower(s.Answer), strings.ToLower(text)) {
			say("the answer does not have %q", text)
		}
	}
	if ok, _ := regexp.MatchString(c.Answer.Matches, s.Answer); !ok { // Read has compiled it
		say("the answer does not match %q", c.Answer.Matches)
	}
	return wrong
}

// Routed reports whether exactly the expected agents worked on it.
func (c Case) Routed(s Outcome) bool {
	return slices.Equal(slices.Sorted(slices.Values(c.Agents)), slices.Sorted(slices.Values(s.Agents)))
}

func (t Tools) judge(called []string) (wrong []string) {
	wanted := t.Order
	if t.Counts != nil {
		wanted = slices.Sorted(maps.Keys(t.Counts))
	}
	counts := map[string]int{}
	var order []string // as they are wanted, by first calls
	for _, id := range called {
		name := id
		if i := slices.IndexFunc(wanted, func(w string) bool { return id == w || strings.HasSuffix(id, "."+w) }); i >= 0 {
			name = wanted[i]
		}
		if counts[name]++; counts[name] == 1 {
			order = append(order, name)
		}
	}
	if t.Counts == nil {
		if !slices.Equal(t.Order, order) {
			return []string{fmt.Sprintf("tools: %s, not %s", listed(order), listed(t.Order))}
		}
		return nil
	}
	for _, name := range wanted {
		if c := t.Counts[name]; counts[name] < c.N || counts[name] > c.N && !c.AtLeast {
			wrong = append(wrong, fmt.Sprintf("%s was called %d times, not %s", name, counts[name], c))
		}
	}
	for _, name := range order {
		if !slices.Contains(wanted, name) {
			wrong = append(wrong, fmt.Sprintf("%s was called, too", name))
		}
	}
	return wrong
}

func (c Count) String() string {
	if c.AtLeast {
		return fmt.Sprintf("%d or more", c.N)
	}
	return fmt.Sprint(c.N)
}

func listed(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}
