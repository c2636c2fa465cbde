package recorder_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/testing/routertest"
	"aob.dev/writ/storage"
)

// The texts of closed plans are in their documents and not in the recorder's memory, even if a
// later record writes the document again.
func TestClosedPlansLeaveNoWords(t *testing.T) {
	const plans, size = 200, 16 << 10
	w := routertest.New(t, routertest.Options{})
	asked := strings.Repeat("x", size)
	for i := range plans {
		p := w.NewPlan(fmt.Sprint("p", i))
		o := p.OpenIntent()
		o.Args = catalog.PlanOpen{PlanID: p.ID, Task: asked}
		w.Want(w.Do(o), intents.OK)
		w.Want(p.Cancel(w.Gateway), intents.OK)
	}
	w.Want(w.NewPlan("open").Open(), intents.OK)
	d := documents(t)
	f := follow(t, w, d)
	f.caughtUp()
	f.stop()
	if got := f.Held(); got.Closed != plans || got.Open != 1 || got.Words > size {
		t.Errorf("%+v", got)
	}
	for _, name := range []string{"p0", "p1", fmt.Sprint("p", plans-1)} {
		id := routertest.PlanID(name)
		doc, err := d.Get(t.Context(), "default", storage.IndexPlans, id)
		w.Must(err)
		var got catalog.PlanView
		w.Must(json.Unmarshal(doc.Body, &got))
		if got.Task != asked || got.Status != catalog.PlanFailed {
			t.Errorf("%s: %s, %d bytes asked", id, got.Status, len(got.Task))
		}
	}
}
