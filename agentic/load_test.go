package agentic

import (
	"encoding/json"
	"testing"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
)

// TestLoadOnce: the tasks of a step ask for a manifest by one order, so that people approve it
// once; after one that had failed by itself comes another.
func TestLoadOnce(t *testing.T) {
	manifest := done(catalog.Manifest{Name: "outlets", InputSchema: json.RawMessage(`{"type":"object"}`), Effect: catalog.Pure})
	before := func(code intents.Code) func(placed) *intents.Answer {
		return func(p placed) *intents.Answer {
			a := outcome(code, intents.Failed, false)(p)
			a.Replayed = true
			return a
		}
	}
	for name, tt := range map[string]struct {
		answer func(placed) *intents.Answer
		orders []int // of two tasks, by occurrence
		status string
	}{
		"loaded":   {manifest, []int{0, 0}, taskInsufficient},
		"waits":    {refuse(intents.ApprovalRequired, "ask"), []int{0, 0}, taskHeld},
		"rejected": {before(intents.ApprovalRejected), []int{0, 0}, taskFailed},
		"failed":   {inTurn(before(intents.ExecutorFailed), manifest), []int{0, 1, 0}, taskInsufficient},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCore(t)
			working(c)
			c.on("skill.load", tt.answer)
			for range 2 {
				if got, _ := worked(t, c, giveUp); got.Status != tt.status {
					t.Fatalf("%+v", got)
				}
			}
			loads := c.of("skill.load")
			if len(loads) != len(tt.orders) {
				t.Fatalf("%+v", loads)
			}
			for i, o := range loads {
				if o.Occurrence != tt.orders[i] || (o.Key == loads[0].Key) != (o.Occurrence == 0) {
					t.Errorf("%d: %+v", i, o)
				}
			}
		})
	}
}
