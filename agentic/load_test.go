package agentic

import (
	"testing"

	"aob.dev/writ/intents"
)

// TestLoadHeldOnce: the tasks of a step request a manifest by one intent, so that its approvers
// are asked once.
func TestLoadHeldOnce(t *testing.T) {
	c := newCore(t)
	working(c)
	c.on("skill.load", refuse(intents.ApprovalRequired, "ask"))
	for range 2 {
		if got, _ := worked(t, c, giveUp); got.Status != taskPendingApproval {
			t.Fatalf("%+v", got)
		}
	}
	if loads := c.ofType("skill.load"); len(loads) != 2 || loads[0].Key != loads[1].Key {
		t.Errorf("%+v", loads)
	}
}
