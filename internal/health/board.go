// Package health has the conditions of a process: those that stop it from accepting
// intents, and those that somebody should look at while it accepts them.
package health

import (
	"slices"
	"strings"
	"sync"
)

// Condition is one fault. It names no tenant and no intent,
// because everybody may read it.
type Condition struct {
	Name   string `json:"name"`
	Reason string `json:"reason"`
	Do     string `json:"do"`     // what to do, with a command if there is one
	Blocks bool   `json:"blocks"` // no new intent is accepted
}

// Board has the conditions of a process. The zero value is a healthy one. Safe for
// concurrent use.
type Board struct {
	mu      sync.Mutex // guards raised
	raised  map[string]Condition
	changed func([]Condition)
}

// New makes a board. changed, if not nil, is called with the conditions whenever they
// change. It must not call the board.
func New(changed func([]Condition)) *Board { return &Board{changed: changed} }

// Raise sets a condition, in place of one of the same name. It returns whether anything
// has changed.
func (b *Board) Raise(c Condition) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.raised[c.Name] == c {
		return false
	}
	if b.raised == nil {
		b.raised = make(map[string]Condition)
	}
	b.raised[c.Name] = c
	b.tell()
	return true
}

// Clear removes a condition, and returns whether it was set.
func (b *Board) Clear(name string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if _, up := b.raised[name]; !up {
		return false
	}
	delete(b.raised, name)
	b.tell()
	return true
}

func (b *Board) tell() {
	if b.changed != nil {
		b.changed(b.list())
	}
}

// Up returns whether a condition is set.
func (b *Board) Up(name string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	_, up := b.raised[name]
	return up
}

// List returns the conditions: blocking ones first, then by name. A nil board has none.
func (b *Board) List() []Condition {
	if b == nil {
		return nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.list()
}

func (b *Board) list() []Condition {
	var out []Condition
	for _, c := range b.raised {
		out = append(out, c)
	}
	slices.SortFunc(out, func(x, y Condition) int {
		if x.Blocks != y.Blocks {
			if x.Blocks {
				return -1
			}
			return 1
		}
		return strings.Compare(x.Name, y.Name)
	})
	return out
}

// Blocker returns the first condition that stops intents from being accepted, but for one.
func (b *Board) Blocker(but string) (Condition, bool) {
	for _, c := range b.List() {
		if c.Blocks && c.Name != but {
			return c, true
		}
	}
	return Condition{}, false
}
