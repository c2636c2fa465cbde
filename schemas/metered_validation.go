package schemas

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"aob.dev/writ/internal/visible"
)

// machine is one compilation of a foreign schema, with the budget for its charges, for one
// validation at a time.
type machine struct {
	schema *jsonschema.Schema
	// broken accepts what schema does not. Below a not the validator stops at the first finding
	// and retains none.
	broken *jsonschema.Schema
	budget *budget
}

// newMachine compiles a schema that was measured.
func newMachine(tree any) (m *machine, err error) {
	defer func() { // the compiler panics on some documents that the metaschema allows
		if recover() != nil {
			m, err = nil, errors.New("schema cannot be compiled")
		}
	}()
	const location, opposite = "urn:writ:foreign", "urn:writ:broken"
	c, all := newCompiler(), &meters{budget: &budget{}, patterns: newPatterns(), charges: map[*jsonschema.Schema]*charge{}}
	c.UseRegexpEngine(all.patterns.compile)
	c.RegisterVocabulary(all.vocabulary())
	c.AssertVocabs()
	if err := c.AddResource(location, tree); err != nil {
		return nil, fmt.Errorf("schema: %s", visible.Cut(err.Error(), maxReason))
	}
	m = &machine{budget: all.budget}
	if m.schema, err = c.Compile(location); err != nil {
		return nil, fmt.Errorf("schema: %s", visible.Cut(err.Error(), maxReason)) // the metaschema reports as many findings as the schema has places
	}
	if err := c.AddResource(opposite, map[string]any{"not": map[string]any{"$ref": location}}); err != nil {
		return nil, fmt.Errorf("schema: %v", err)
	}
	if m.broken, err = c.Compile(opposite); err != nil {
		return nil, fmt.Errorf("schema: %v", err)
	}
	all.patterns.closed.Store(true)
	all.compute()
	return m, nil
}

// Reasons of an unfinished check.
const (
	tooMuchWork = "takes too much work to check"
	outOfTime   = "was not checked in time"
	tooManyToo  = "does not match the schema, in too many ways to tell"
)

// validate first checks whether the value matches, and looks for violations only if it does not.
func (m *machine) validate(ctx context.Context, v any, tree any) []Violation {
	doc := extentOf(v)
	m.budget.start(ctx, doc, false)
	err, ended := m.run(m.broken, v)
	switch {
	case ctx.Err() != nil:
		return []Violation{{Reason: outOfTime}}
	case !ended:
		return []Violation{{Reason: tooMuchWork}}
	case err != nil:
		return nil
	}
	m.budget.start(ctx, doc, true)
	err, ended = m.run(m.schema, v)
	var failed *jsonschema.ValidationError
	switch {
	case !ended:
		return []Violation{{Reason: tooManyToo}}
	case !errors.As(err, &failed):
		return []Violation{{Reason: "is not valid"}}
	}
	return collect(failed, tree)
}

// run ends early if the budget is exhausted.
func (m *machine) run(s *jsonschema.Schema, v any) (err error, ended bool) {
	defer func() {
		if recover() != nil {
			err, ended = nil, false
		}
	}()
	return s.Validate(v), true
}

// spare is the number of idle machines retained per schema.
const spare = 4

// machines of one schema. A validation never waits for another: if no machine is idle, one more
// is compiled.
type machines struct {
	tree any

	mu   sync.Mutex // guards idle
	idle []*machine
}

func (all *machines) validate(ctx context.Context, v any) []Violation {
	m, err := all.take()
	if err != nil {
		return []Violation{{Reason: "cannot be checked"}} // it compiled before
	}
	defer all.giveBack(m)
	return m.validate(ctx, v, all.tree)
}

// take returns an idle machine or a new one.
func (all *machines) take() (*machine, error) {
	all.mu.Lock()
	n := len(all.idle)
	if n == 0 {
		all.mu.Unlock()
		return newMachine(all.tree)
	}
	defer all.mu.Unlock()
	m := all.idle[n-1]
	all.idle = all.idle[:n-1]
	return m, nil
}

func (all *machines) giveBack(m *machine) {
	m.budget.ctx = nil
	all.mu.Lock()
	defer all.mu.Unlock()
	if len(all.idle) < spare {
		all.idle = append(all.idle, m)
	}
}
