// Package eval judges the outcomes of messages to agents. docs/eval.md describes the format of
// cases.
package eval

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"aob.dev/writ/intents/catalog"
)

// Set is one file of cases.
type Set struct {
	File  string   `yaml:"-"`
	Min   *float64 `yaml:"min"` // of 0 to 1: the share of its cases that must pass
	Cases []Case   `yaml:"cases"`
}

// Case is a message and its required outcome. Omitted members are not judged.
type Case struct {
	Message string   `yaml:"message"`
	Agent   string   `yaml:"agent"` // that is asked; empty: the server chooses
	History []Turn   `yaml:"history"`
	Agents  []string `yaml:"agents"`
	Tools   *Tools   `yaml:"tools"`
	Answer  Answer   `yaml:"answer"`
	Refused bool     `yaml:"refused"` // the plan fails, or the answer comes without a call
}

// Turn is an earlier turn of a case's session.
type Turn struct {
	Message string   `yaml:"message"`
	Agents  []string `yaml:"agents"` // agents expected to work on it, for the rates of pairs
}

// Answer is the required answer: it contains each text, ignoring case, and matches the regular
// expression.
type Answer struct {
	Contains []string `yaml:"contains"`
	Matches  string   `yaml:"matches"`
}

// Tools are the calls of a turn: in the order of the first calls, or counted.
type Tools struct {
	Order  []string
	Counts map[string]Count
}

// Count is how often a tool must be called.
type Count struct {
	N       int
	AtLeast bool
}

// UnmarshalYAML reads n, or n+.
func (c *Count) UnmarshalYAML(n *yaml.Node) (err error) {
	text, more := strings.CutSuffix(n.Value, "+")
	if c.N, err = strconv.Atoi(text); err != nil || c.N < 0 {
		return fmt.Errorf("line %d: %q is no count: write n, or n+ for at least n", n.Line, n.Value)
	}
	c.AtLeast = more
	return nil
}

// UnmarshalYAML reads a list of names, or a mapping of names to counts.
func (t *Tools) UnmarshalYAML(n *yaml.Node) error {
	if n.Kind == yaml.MappingNode {
		return n.Decode(&t.Counts)
	}
	return n.Decode(&t.Order)
}

// Read reads the sets of a directory: its YAML files.
func Read(dir fs.FS) (sets []Set, err error) {
	files, err := fs.Glob(dir, "*.y*ml")
	if err != nil {
		return nil, err
	}
	for _, name := range files {
		s, err := read(dir, name)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		sets = append(sets, s)
	}
	if len(sets) == 0 {
		return nil, errors.New("has no cases: write them into a file *.yaml")
	}
	return sets, nil
}

func read(dir fs.FS, name string) (Set, error) {
	s := Set{File: name}
	f, err := dir.Open(name)
	if err != nil {
		return s, err
	}
	defer f.Close()
	d := yaml.NewDecoder(f)
	d.KnownFields(true)
	if err := d.Decode(&s); err != nil && !errors.Is(err, io.EOF) {
		return s, err
	}
	switch {
	case len(s.Cases) == 0:
		return s, errors.New("cases is missing or empty")
	case s.Min != nil && (*s.Min < 0 || *s.Min > 1):
		return s, errors.New("min is from 0 to 1")
	}
	for i, c := range s.Cases {
		if _, err := regexp.Compile(c.Answer.Matches); err != nil {
			return s, fmt.Errorf("case %d: matches: %w", i+1, err)
		}
		if strings.TrimSpace(c.Message) == "" {
			return s, fmt.Errorf("case %d: message is missing", i+1)
		}
	}
	return s, nil
}

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
	case c.Refused && !catalog.PlanStatus(s.Status).Ended(), !c.Refused && s.Status != complete:
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
