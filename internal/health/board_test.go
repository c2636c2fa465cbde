package health

import (
	"slices"
	"testing"
)

func TestBoard(t *testing.T) {
	var told [][]Condition
	b := New(func(list []Condition) { told = append(told, list) })
	low := Condition{Name: "a", Reason: "low", Do: "make room"}
	bad := Condition{Name: "b", Reason: "jumped", Do: "confirm", Blocks: true}
	if _, blocked := b.Blocker(""); blocked || !b.Raise(low) || b.Raise(low) {
		t.Error("a condition is news once")
	}
	if _, blocked := b.Blocker(""); blocked {
		t.Error("what does not block blocks")
	}
	if !b.Raise(bad) || !slices.Equal(b.List(), []Condition{bad, low}) {
		t.Errorf("%+v", b.List())
	}
	if c, blocked := b.Blocker(""); !blocked || c != bad {
		t.Errorf("%+v %v", c, blocked)
	}
	if !b.Clear("b") || b.Clear("b") || len(told) != 3 {
		t.Errorf("told %d times", len(told))
	}
	var none *Board
	if none.List() != nil {
		t.Error("nobody watches")
	}
}
