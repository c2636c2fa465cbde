package routertest

import (
	"encoding/json"
	"testing"

	"aob.dev/writ/intents"
	"aob.dev/writ/internal/testing/intentstest"
	"aob.dev/writ/storage"
)

// VectorRoot is the root key whose log the vectors of intents are for.
func VectorRoot(tb testing.TB) *intents.Signer {
	tb.Helper()
	root := intentstest.Signer(tb, intents.RoleRoot, "root")
	return &root
}

// KnowVectors puts the keys of the vectors in force: all but the task's by a key
// set, and the task's by a step of a plan.
func (w *World) KnowVectors() {
	w.Helper()
	known := intentstest.Keys(w)
	if known.Origin != w.Origin {
		w.Fatal("the world's root is not that of the vectors")
	}
	w.Want(w.Keys(func(set *intents.KeySet) {
		for _, k := range known.Keys {
			if k.Role != intents.RoleTask {
				set.Keys = append(set.Keys, k)
			}
		}
	}), intents.OK)
	t := w.Begun("plan_1", "outlet_list").NewTask(1)
	t.Key = intentstest.Signer(w, intents.RoleTask, "task")
	w.Want(w.Do(t.StepIntent(t.StepArgs())), intents.OK)
}

// Vectors sends every vector at its time. send returns the code and, for an intent to be verified,
// whether it passed stage 2, which each entrance reports in its own way. A refusal leaves no
// record.
func (w *World) Vectors(send func(raw []byte) (code intents.Code, past bool)) {
	w.Helper()
	accepted, refused := 0, 0
	for _, v := range intentstest.Vectors(w) {
		w.Clock.Move(v.Now.Sub(w.Clock.Now()))
		before := w.Journal.Next()
		code, past := send(v.Raw())
		if v.Verifies() {
			accepted++
			if !past {
				w.Errorf("%s: %s in stage 1 or 2, want it verified", v.Name, code)
			}
			continue
		}
		refused++
		if code != v.Expect {
			w.Errorf("%s: %s, want %s", v.Name, code, v.Expect)
		}
		if w.Journal.Next() != before {
			w.Errorf("%s: the refusal left a record", v.Name)
		}
	}
	if accepted == 0 || refused == 0 {
		w.Errorf("%d accepted, %d refused", accepted, refused)
	}
}

// Recorded reports whether an intent left a record, including a denial.
func (w *World) Recorded(id string) bool {
	w.Helper()
	for _, r := range w.Records() {
		var d intents.Decision
		if raw := r.Parts[storage.PartDecision]; raw != nil {
			w.Must(json.Unmarshal(raw, &d))
		}
		if d.IntentID == id && id != "" {
			return true
		}
	}
	return false
}
