package agentic

import (
	"testing"

	"aob.dev/writ/intents"
)

// TestLoadHeldOnce: the tasks of a step ask for a manifest by one order, so that people who have
// to approve it are asked once.
func TestLoadHeldOnce(t *testing.T) {
	c := newCore(t)
	working(c)
	c.on("skill.load", refuse(intents.ApprovalRequired, "ask"))
	for range 2 {
		if got, _ := worked(t, c, giveUp); got.Status != taskHeld {
			t.Fatalf("%+v", got)
		}
	}
	if loads := c.of("skill.load"); len(loads) != 2 || loads[0].Key != loads[1].Key {
		t.Errorf("%+v", loads)
	}
}
