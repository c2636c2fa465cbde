package executors

import (
	"bytes"
	"context"
	"encoding/json"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"aob.dev/writ/bus"
)

// asked is what a service says of an attempt.
func asked(t *testing.T, s *Service, q bus.ReportRequest) (r bus.ReportReply) {
	t.Helper()
	raw, err := json.Marshal(q)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(s.answerReports(t.Context(), raw), &r); err != nil {
		t.Fatal(err)
	}
	return r
}

// TestKeptReports: an attempt runs, is done until it is recorded, and is then unknown, like one that
// never began. Who knows nothing answers later than who does.
func TestKeptReports(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &Service{}
		a := bus.Attempt{IntentID: "sha256:a", Number: 1}
		q := bus.ReportRequest{Attempt: a}
		began := time.Now()
		if r := asked(t, s, q); r.State != bus.ReportUnknown || time.Since(began) < unknownPause {
			t.Errorf("%+v after %s", r, time.Since(began))
		}
		s.reports.begin(attempt{a.IntentID, a.Number}, new(atomic.Pointer[bus.Progress]), func(error) {})
		began = time.Now()
		if r := asked(t, s, q); r.State != bus.ReportRunning || time.Since(began) != 0 {
			t.Errorf("%+v after %s", r, time.Since(began))
		}
		s.reports.end(attempt{a.IntentID, a.Number}, []byte(`{"status":"done"}`))
		if r := asked(t, s, q); r.State != bus.ReportDone || string(r.Report) != `{"status":"done"}` {
			t.Errorf("%+v", r)
		}
		if r := asked(t, s, bus.ReportRequest{Attempt: bus.Attempt{IntentID: a.IntentID, Number: 2}}); r.State != bus.ReportUnknown {
			t.Errorf("another attempt: %+v", r)
		}
		asked(t, s, bus.ReportRequest{Recorded: []bus.Attempt{a}})
		if r := asked(t, s, q); r.State != bus.ReportUnknown || s.reports.bytes != 0 || s.reports.ended.Len() != 0 {
			t.Errorf("%+v", r)
		}
	})
}

// TestKeptReportsAreBounded: the oldest go first, by bytes and by time.
func TestKeptReportsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var k keptReports
		large := bytes.Repeat([]byte("a"), keepBytes/4)
		for n := range 6 {
			k.begin(attempt{"large", n}, new(atomic.Pointer[bus.Progress]), func(error) {})
			k.end(attempt{"large", n}, large)
		}
		if k.bytes > keepBytes || k.of(attempt{"large", 1}) != nil || k.of(attempt{"large", 2}) == nil {
			t.Errorf("%d bytes", k.bytes)
		}
		time.Sleep(keepFor + time.Second)
		if k.of(attempt{"large", 5}) != nil {
			t.Error("it is kept for good")
		}
		k.begin(attempt{"next", 1}, new(atomic.Pointer[bus.Progress]), func(error) {})
		k.end(attempt{"next", 1}, nil)
		if len(k.by) != 1 || k.bytes != 0 {
			t.Errorf("%d reports, %d bytes", len(k.by), k.bytes)
		}
	})
}

// TestSameDispatch: the same attempt is begun once, and both get its report.
func TestSameDispatch(t *testing.T) {
	var k keptReports
	a := attempt{"sha256:a", 1}
	if k.begin(a, new(atomic.Pointer[bus.Progress]), func(error) {}) != nil {
		t.Fatal("it has begun before")
	}
	second := k.begin(a, new(atomic.Pointer[bus.Progress]), func(error) {})
	if second == nil {
		t.Fatal("it begins twice")
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if raw := second.wait(ended); raw != nil {
		t.Errorf("%s", raw)
	}
	k.end(a, []byte("r"))
	if raw := second.wait(t.Context()); string(raw) != "r" {
		t.Errorf("%s", raw)
	}
}
