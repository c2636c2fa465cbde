package recorder_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/router/routertest"
	"aob.dev/writ/storage"
)

// The events of a session are one timeline over its plans, in order (OBS-02).
func TestTimelineOfASession(t *testing.T) {
	d := documents(t)
	w, f := woken(t, d)
	w.TwoSteps()
	w.Begun("p2", "rank").Started(1)
	f.caughtUp()
	f.stop()
	page, err := d.Search(t.Context(), "default", storage.IndexEvents, storage.Query{Terms: map[string][]string{"session_id": {routertest.Session}}, Sort: "event_id", Limit: 1000})
	w.Must(err)
	plans := map[string]int{}
	last := told{Position: -1}
	for _, doc := range page.Documents {
		var e told
		w.Must(json.Unmarshal(doc.Body, &e))
		plans[e.PlanID]++
		if e.Position < last.Position || e.Position == last.Position && e.Seq <= last.Seq {
			t.Errorf("%s at %d.%d comes after %s at %d.%d", e.Type, e.Position, e.Seq, last.Type, last.Position, last.Seq)
		}
		last = e
	}
	if plans["plan_1"] != len(eventsOf(t, d, "plan_1")) || plans["p2"] != len(eventsOf(t, d, "p2")) || plans["p2"] == 0 {
		t.Errorf("events by plan: %v", plans)
	}
}

// The digest of a script is a member of its own, so that it can be searched for
// (AUD-08); a step that failed says why (OBS-05).
func TestScriptsAndReasons(t *testing.T) {
	d := documents(t)
	w, f := woken(t, d)
	w.Pin("feed", catalog.Pure)
	p := w.Begun("p1", "feed")
	task := p.Started(1)
	hash := intents.Digest([]byte("print(1)"))
	w.Bus.On("exec_python", routertest.Always(routertest.Done(catalog.ExecPythonResult{Output: []byte(`1`)},
		routertest.Fact("python_script.executed", `{"script_hash":"`+hash+`","input_rows":3,"output_rows":1,"duration_ms":1,"exit_code":0}`))))
	w.OK(task.Order("exec_python", catalog.ExecPython{Script: "print(1)"}))
	w.Want(task.Finish("failed", "", "skill_timeout"), intents.OK)
	f.caughtUp()
	f.stop()
	page, err := d.Search(t.Context(), "default", storage.IndexEvents, storage.Query{Terms: map[string][]string{"script_hash": {hash}}})
	w.Must(err)
	if len(page.Documents) != 1 || !strings.Contains(string(page.Documents[0].Body), `"python_script.executed"`) {
		t.Errorf("found by its hash: %d", len(page.Documents))
	}
	failed := find(t, eventsOf(t, d, "p1"), "step_1.failed")
	if diff := cmp.Diff("skill_timeout", failed.Payload["reason"]); diff != "" {
		t.Error(diff)
	}
	ran := find(t, eventsOf(t, d, "p1"), "python_script.executed")
	members(t, ran, "script_hash", "input_rows", "output_rows", "duration_ms", "exit_code")
}
