package agentic

import (
	"testing"

	"aob.dev/writ/intents/catalog"
)

// Answers of concurrent tasks arrive in any order. The newest one determines the next actions: a
// node that has begun since is not begun again.
func TestTakesTheNewest(t *testing.T) {
	var d Run
	d.take(catalog.PlanView{Epoch: 2}, 12, []catalog.NextNode{{Step: 4, Next: catalog.NextRun}})
	d.take(catalog.PlanView{Epoch: 1}, 10, []catalog.NextNode{{Step: 3, Next: catalog.NextRun}})
	if len(d.next) != 1 || d.next[0].Step != 4 || d.plan.Epoch != 2 {
		t.Errorf("next %+v of epoch %d", d.next, d.plan.Epoch)
	}
}
