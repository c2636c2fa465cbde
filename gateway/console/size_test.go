package console

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
)

// maxPage is how large a page may be, in bytes.
const maxPage = 60 << 10

// TestPlanPageSize: the page of a plan that has all that plans may have, but long texts, is no larger.
func TestPlanPageSize(t *testing.T) {
	now := time.Now()
	p := planPage{PlanView: catalog.PlanView{PlanID: "plan_" + strings.Repeat("0", 26), Task: strings.Repeat("a ", 500), Response: strings.Repeat("b ", 1000), CreatedAt: now}}
	var events []event
	for i := range catalog.MaxSteps {
		s := catalog.StepView{PlanStep: catalog.PlanStep{Step: i + 1, Task: strings.Repeat("do ", 50), Skills: []string{"skills-1.outlet_list", "skills-1.order_list"}}, Status: catalog.StepDone, StartedAt: &now, FinishedAt: &now}
		p.Steps, p.Rows = append(p.Steps, s), append(p.Rows, stepRow{StepView: s, After: []string{"1", "2"}})
	}
	for i := range pageSize {
		p.List.Intents = append(p.List.Intents, entry{
			IntentEntry: catalog.IntentEntry{IntentID: fmt.Sprintf("sha256:%064d", i), Type: "skill.call", Skill: "skills-1.outlet_list", UserID: "somebody", Role: "task", KID: strings.Repeat("k", 43), At: now.Format(time.RFC3339)},
			Outcome:     &intents.Outcome{Status: intents.Done, Code: intents.OK}, Receipt: "x",
		})
	}
	for range 1000 {
		events = append(events, event{Type: "step_1.started", At: now, TaskID: "task_" + strings.Repeat("0", 26), Payload: json.RawMessage(`{"skill":["skills-1.outlet_list"],"step_index":3,"task_id":"task_000mx4uapifjvu2lmdn34fvo3s"}`)})
	}
	p.takeEvents(events, 7)
	p.Graph, p.Waterfall = graphOf(p.PlanView), waterfallOf(p.PlanView, nil, now)
	w := httptest.NewRecorder()
	newConsole(t, nil).render(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/console/plans/p", nil), http.StatusOK, "plan", &session{}, p)
	if n := w.Body.Len(); w.Code != http.StatusOK || n > maxPage || p.NextEvent != 7+len(p.Events) || len(p.Events) < 20 {
		t.Errorf("%d bytes with %d events", n, len(p.Events))
	}
}

// TestIntentPageSize: the page of an intent with as large arguments and as large a result as there are is no
// larger, and says that it has not all of them.
func TestIntentPageSize(t *testing.T) {
	large, err := json.Marshal(map[string]any{"rows": strings.Split(strings.Repeat("a row\n", 8000), "\n")})
	if err != nil {
		t.Fatal(err)
	}
	p := intentPage{Answer: intents.Answer{IntentID: "sha256:1", Outcome: &intents.Outcome{Status: intents.Done, Result: large}}}
	p.Args = large
	w := httptest.NewRecorder()
	newConsole(t, nil).render(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/console/intents/1", nil), http.StatusOK, "intent", &session{}, p)
	if n := w.Body.Len(); w.Code != http.StatusOK || n > maxPage || strings.Count(w.Body.String(), "This is the beginning.") != 2 {
		t.Errorf("%d bytes", n)
	}
}
