package audit_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"aob.dev/writ/audit"
	"aob.dev/writ/intents"
	"aob.dev/writ/storage"
)

// TestClockStepsBack: a clock that steps back does no harm: the log verifies and replays, holds and
// approvals in it too, and the report says that it happened.
func TestClockStepsBack(t *testing.T) {
	w := newWorld(t)
	w.live(2)
	w.Clock.Move(-time.Hour)
	w.approvals()
	r := w.verify(w.export(w.Journal, audit.Selection{}), audit.Options{Trust: w.trust(), Replay: true})
	if !r.OK || r.FirstBad != nil || r.ClockSteps == 0 || !strings.Contains(r.String(), "stepped back") {
		t.Errorf("%+v %v", r, r.FirstBad)
	}
	latest := time.Time{}
	for _, rec := range w.Records() {
		if rec.At.Before(latest) {
			t.Errorf("record %d is timed before an earlier one", rec.Position)
		}
		latest = rec.At
	}
}

// TestRecordsGoBackInTime: records whose time goes back are counted, and are no fault: positions order them.
func TestRecordsGoBackInTime(t *testing.T) {
	w := newWorld(t)
	w.live(2)
	w.Clock.Move(-time.Hour)
	w.plan(100)
	records := slice(w.Records())
	back := int64(0)
	for i, rec := range records {
		if rec.Kind != storage.KindIntent {
			continue
		}
		now, err := time.Parse(time.RFC3339Nano, inputsOf(t, rec).Now)
		w.Must(err)
		if now.Before(rec.At) {
			back++
		}
		records[i].At = now
	}
	r := w.verify(w.export(records, audit.Selection{}), audit.Options{Trust: w.trust(), Replay: true})
	if !r.OK || r.ClockSteps < back || back == 0 {
		t.Errorf("%d records go back: %+v %v", back, r, r.FirstBad)
	}
}

// TestDecidedAfterItsRecord: a decision is never timed after its record: what came later could have been known.
func TestDecidedAfterItsRecord(t *testing.T) {
	w := newWorld(t)
	w.live(1)
	at := w.find(storage.PartInputs, func(map[string]any) bool { return true })
	late := w.part(at, storage.PartInputs, func(m map[string]any) { m["now"] = "2038-01-01T00:00:00.000Z" })
	w.badAt(late, at, "at another time than its record says", audit.Options{})
}

func inputsOf(t *testing.T, rec storage.Record) (f intents.DecisionInputs) {
	t.Helper()
	if err := json.Unmarshal(rec.Parts[storage.PartInputs], &f); err != nil {
		t.Fatal(err)
	}
	return f
}
