// Package health is what a process says of itself: what keeps it from taking
// orders, and what somebody should look at while it takes them.
package health

import (
	"slices"
	"strings"
	"sync"
)

// Condition is one thing that is not as it should be. It names no tenant and no
// order: everybody may read it.
type Condition struct {
	Name   string `json:"name"`
	Reason string `json:"reason"`
	Do     string `json:"do"`     // with the command to type, where there is one
	Blocks bool   `json:"blocks"` // no new order is taken
}

// Board holds the conditions of a process. The zero value is a healthy one. Safe for
// concurrent use.
type Board struct {
	mu      sync.Mutex // guards raised
	raised  map[string]Condition
	changed func([]Condition)
}

// New board. changed, if not nil, is told whenever the conditions are others than
// before; it must not call the board.
func New(changed func([]Condition)) *Board { return &Board{changed: changed} }

// Raise puts a condition up, in place of one of the same name. It says whether
// that is news.
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

// Clear takes a condition down, and says whether it was up.
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

// Up says whether a condition is.
func (b *Board) Up(name string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	_, up := b.raised[name]
	return up
}

// List is what is up: what blocks first, then by name. A nil board has nothing up.
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

// Blocked is the first condition that keeps orders from being taken.
func (b *Board) Blocked() (Condition, bool) {
	if list := b.List(); len(list) > 0 && list[0].Blocks {
		return list[0], true
	}
	return Condition{}, false
}
