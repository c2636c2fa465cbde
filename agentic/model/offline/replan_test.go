package offline

import (
	"strings"
	"testing"
)

// TestPlansOnce: there is no alternative plan, so a failed step ends the plan with its reason.
func TestPlansOnce(t *testing.T) {
	w := quakeWorld(t)
	failed := block{"Plan", map[string]any{"completed": []any{}, "failed": map[string]string{"reason": "earthquake_feed is down"}}}
	if _, out := w.planned(w.planner(t, strongest, failed)); !strings.HasSuffix(out.Infeasible, "earthquake_feed is down.") {
		t.Errorf("%+v", out)
	}
	k := w.planner(t, strongest)
	w.planned(k)
	k.answer(map[string]any{"violations": []string{"step 2: place is not in the output schema of rank"}})
	if _, out := w.planned(k); !strings.Contains(out.Infeasible, "place is not in the output schema") {
		t.Errorf("the same refused plan again: %+v", out)
	}
	if out := writePlan(strongest, w.skills([]string{"earthquake_feed", "rank"}), planInput{FirstStep: 1, MaxSteps: 1}); len(out.Steps) != 1 {
		t.Errorf("%+v", out)
	}
}
