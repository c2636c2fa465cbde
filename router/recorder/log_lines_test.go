package recorder_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/testing/routertest"
	"aob.dev/writ/storage"
)

// logOf a plan as the index has it, in its order.
func logOf(t *testing.T, d storage.Documents, plan string) (out []string) {
	t.Helper()
	page, err := d.Search(t.Context(), "default", storage.IndexEvents, storage.Query{Terms: map[string][]string{"plan_id": {plan}, "event_type": {catalog.EventLine}}, Limit: 1000})
	if err != nil {
		t.Fatal(err)
	}
	for _, doc := range page.Documents {
		var e struct {
			Payload catalog.LogLine `json:"payload"`
		}
		if err := json.Unmarshal(doc.Body, &e); err != nil {
			t.Fatal(err)
		}
		l := e.Payload
		out = append(out, fmt.Sprintf("%d.%d.%d %s %s: %s", l.Step, l.Attempt, l.N, l.Level, l.Source, l.Text))
	}
	return out
}

// The lines of outcomes become the log of their plan, and so do the reasons of failed intents. An
// intent that names another user's plan leaves nothing there.
func TestLog(t *testing.T) {
	d := documents(t)
	w, f := woken(t, d)
	w.Pin("feed", catalog.Pure)
	said := func(r intents.Report, texts ...string) intents.Report {
		for _, text := range texts {
			r.Lines = append(r.Lines, intents.Line{At: w.Clock.Now(), Level: intents.LevelInfo, Source: "feed:stderr", Text: text})
		}
		return r
	}
	p := w.Begun("p1", "feed")
	task := p.Started(1)
	w.Bus.On("skill.call", routertest.Always(said(routertest.Done(catalog.SkillCallResult{Output: []byte(`1`)}), "one", "two")))
	w.Want(task.Call("feed", `{}`), intents.OK)
	w.Bus.On("skill.call", routertest.Always(said(intents.Report{Status: intents.Failed, Code: intents.ExecutorFailed, Reason: "no luck"}, "three")))
	w.Want(task.Call("feed", `{"again":true}`), intents.ExecutorFailed)
	w.Bus.On("soul.get", routertest.Always(intents.Report{Status: intents.Failed, Code: intents.NotFound, Reason: "forged"}))
	w.Do(routertest.Intent{By: w.Gateway, Type: "soul.get", Args: catalog.SoulGet{}, User: "ben", Ctx: intents.Context{PlanID: routertest.PlanID("p1")}})
	f.caughtUp()
	f.stop()
	want := []string{"1.1.0 info feed:stderr: one", "1.1.1 info feed:stderr: two", "1.1.0 info feed:stderr: three", "1.1.999 error writ: skill.call failed: EXECUTOR_FAILED: no luck"}
	if diff := cmp.Diff(want, logOf(t, d, routertest.PlanID("p1"))); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}
