package monitor_test

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"aob.dev/writ/intents"
	"aob.dev/writ/internal/clock"
	"aob.dev/writ/internal/egress"
	"aob.dev/writ/internal/notify"
	"aob.dev/writ/monitor"
	"aob.dev/writ/schemas"
	"aob.dev/writ/storage"
	"aob.dev/writ/storage/sqlite"
)

var noon = time.Date(2026, 11, 24, 12, 0, 0, 0, time.UTC)

// house has real documents, and a clock that a test sets.
type house struct {
	*testing.T
	docs *sqlite.Documents
	dir  string
	now  time.Time
	n    int64
}

func newHouse(t *testing.T) *house {
	t.Helper()
	dir := t.TempDir()
	docs, err := sqlite.OpenDocuments(t.Context(), filepath.Join(dir, "documents.db"), func(index string, _ []byte, value any) (string, string, bool) {
		s, err := schemas.Storage(index)
		if err != nil {
			return "", "no such index", false
		}
		if v := s.Validate(value); len(v) > 0 {
			return v[0].Pointer, v[0].Reason, false
		}
		return "", "", true
	}, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = docs.Close() })
	return &house{T: t, docs: docs, dir: dir, now: noon}
}

// put writes a document as the recorder would.
func (h *house) put(index, id string, members map[string]any) {
	h.Helper()
	h.n++
	members["tenant_id"] = "default"
	body, err := json.Marshal(members)
	if err != nil {
		h.Fatal(err)
	}
	if _, err := h.docs.Create(h.Context(), "default", index, storage.Document{ID: id, Position: h.n, Body: body}); err != nil {
		h.Fatal(err)
	}
}

func (h *house) event(typ string, at time.Time, payload map[string]any) {
	h.Helper()
	id := fmt.Sprintf("%012d-00", h.n+1)
	h.put(storage.IndexEvents, id, map[string]any{
		"event_id": id, "event_type": typ, "plan_id": "plan_1", "payload": payload, "ts": intents.FormatTime(at), "position": h.n + 1, "seq": 0,
	})
}

func (h *house) plan(id, status string, replans int, ended time.Time) {
	h.Helper()
	h.put(storage.IndexPlans, id, map[string]any{
		"plan_id": id, "status": status, "replan_count": replans, "created_at": intents.FormatTime(ended.Add(-time.Minute)), "completed_at": intents.FormatTime(ended),
		"user_id": "ana", "session_id": "s", "task": "t", "steps": []any{}, "replan_history": []any{}, "revision": 1, "epoch": 1, "max_steps": 10,
	})
}

func (h *house) receiver(kind, url string) notify.Receiver {
	return notify.New(notify.Options{
		Name: kind, Kind: kind, URL: url, Secret: "signed", Now: func() time.Time { return h.now },
		Server: egress.Server{Name: kind, Unaffected: "alerts are kept for it", Quiet: true},
	})
}

func (h *house) watch(receivers ...notify.Receiver) *monitor.Watch {
	return &monitor.Watch{
		Recent: h.recent(h.docs), Process: func() monitor.Process { return monitor.Process{} },
		Receivers: receivers, Dir: h.dir,
	}
}

func (h *house) recent(docs monitor.Documents) *monitor.Recent {
	return monitor.NewRecent(docs, func() []string { return []string{"default"} }, func() time.Time { return h.now }, slog.New(slog.DiscardHandler))
}

func (h *house) look(w *monitor.Watch) {
	h.Helper()
	if err := w.Look(h.Context()); err != nil {
		h.Fatal(err)
	}
}

// TestFigures: the figures of an hour of documents, without anything before or after.
func TestFigures(t *testing.T) {
	h := newHouse(t)
	in, before := noon.Add(-10*time.Minute), noon.Add(-2*time.Hour)
	for _, at := range []time.Time{in, before} {
		for i, p := range []struct {
			status  string
			replans int
		}{{"complete", 0}, {"complete", 0}, {"complete", 1}, {"failed", 3}} {
			h.plan(fmt.Sprintf("plan_%d_%d", i, at.Unix()), p.status, p.replans, at)
		}
		h.event("subagent_a.spawned", at, map[string]any{"mode": "plan"})
		h.event("plan.received", at.Add(1500*time.Millisecond), map[string]any{"steps": 1})
		for i := range 20 {
			h.event("subagent.finish", at.Add(2*time.Second), map[string]any{"duration_ms": (i + 1) * 10})
		}
		h.event("memory.written", at.Add(3*time.Second), map[string]any{"lock_wait_ms": 2100})
		h.event("contract_violation", at.Add(3*time.Second), map[string]any{})
		h.event("skill.principal_mismatch", at.Add(3*time.Second), map[string]any{})
		h.event("large_response.detected", at.Add(3*time.Second), map[string]any{})
		h.event("python_script.executed", at.Add(4*time.Second), map[string]any{"outcome": "ok"})
		h.event("python_script.executed", at.Add(4*time.Second), map[string]any{"outcome": "timeout"})
	}
	for i, status := range []string{"done", "done", "failed"} {
		id := fmt.Sprintf("%012d-01", 9000+i)
		h.put(storage.IndexSkillCalls, id, map[string]any{
			"event_id": id, "intent_id": intents.Digest([]byte(id)), "user_id": "ana", "skill_id": "crm.pay", "status": status, "code": "OK", "position": 9000 + i, "ts": intents.FormatTime(in),
		})
	}
	got, err := monitor.Read(t.Context(), h.docs, []string{"default", "nobody"}, noon.Add(-time.Hour), noon)
	if err != nil {
		t.Fatal(err)
	}
	want := monitor.Figures{
		Since: noon.Add(-time.Hour), Until: noon, Plans: 4, AtOnce: 2, Replans: 4, Exhausted: 1, Calls: 3, Large: 1,
		Skills:  []monitor.SkillFigure{{Skill: "crm.pay", Calls: 3, Failed: 1}},
		Scripts: 2, Timeouts: 1, Writes: 2, Violations: 1, LockWaitMS: 2100, Mismatches: 1,
		Agents: []monitor.AgentFigure{{Agent: "subagent_a", Ended: 1, P95MS: 1500}, {Agent: "subagent_b", Ended: 20, P95MS: 190}},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

// asked counts the aggregations of a watch, and its reads.
type asked struct {
	monitor.Documents
	n     int
	reads atomic.Int64
}

func (a *asked) Search(ctx context.Context, tenant, index string, q storage.Query) (storage.Page, error) {
	a.reads.Add(1)
	return a.Documents.Search(ctx, tenant, index, q)
}

func (a *asked) Aggregate(ctx context.Context, tenant, index string, q storage.Query, by storage.Aggregation) ([]storage.Bucket, error) {
	a.n++
	a.reads.Add(1)
	return a.Documents.Aggregate(ctx, tenant, index, q, by)
}

// TestFirstLook: a start reads the minutes of the hour that have events, and misses none.
func TestFirstLook(t *testing.T) {
	const aMinute = 5                                  // aggregations
	for first, minutes := range map[time.Duration]int{ // before noon
		time.Hour:                    3,
		time.Hour + time.Millisecond: 2, // not in the hour
		5 * time.Minute:              4, // a plan of the minute before may have ended with it
		2*time.Minute + 1e6:          3,
		2 * time.Minute:              3,
		time.Minute + 1e6:            2,
		time.Minute:                  2,
	} {
		h := newHouse(t)
		h.now = noon.Add(5 * time.Second) // events of the last five are not counted
		h.event("contract_violation", noon.Add(-first), map[string]any{})
		h.event("contract_violation", noon.Add(-90*time.Second), map[string]any{})
		h.event("contract_violation", noon.Add(-time.Millisecond), map[string]any{})
		w := h.watch()
		docs := &asked{Documents: h.docs}
		w.Documents = docs
		h.look(w)
		want, err := monitor.Read(t.Context(), h.docs, []string{"default"}, noon.Add(-time.Hour), noon)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(want, w.Last()); d != "" || docs.n != minutes*aMinute {
			t.Errorf("%s before noon: %d aggregations, %s", first, docs.n, d)
		}
	}
}

// TestRecent: whoever looks at the figures of a tenant reads no store, however many intents there
// were; a look at old figures has them counted anew, beside.
func TestRecent(t *testing.T) {
	h := newHouse(t)
	docs := &asked{Documents: h.docs}
	var now atomic.Int64
	now.Store(noon.Add(5 * time.Second).UnixNano())
	r := monitor.NewRecent(docs, func() []string { return []string{"default"} }, func() time.Time { return time.Unix(0, now.Load()).UTC() }, slog.New(slog.DiscardHandler))
	if f, counted := r.Figures("default"); counted || !f.Until.IsZero() {
		t.Errorf("before any count: %+v", f)
	}
	const ended = 500
	for i := range ended {
		h.plan(fmt.Sprintf("plan_%d", i), "complete", i%2, noon.Add(-time.Duration(i)*time.Second))
		h.event("memory.written", noon.Add(-time.Duration(i)*time.Second), map[string]any{"lock_wait_ms": i})
	}
	if err := r.Count(t.Context()); err != nil {
		t.Fatal(err)
	}
	before := docs.reads.Load()
	for range 1000 {
		if f, counted := r.Figures("default"); !counted || f.Plans != ended-1 || f.AtOnce != ended/2-1 || f.Writes != ended-1 || f.LockWaitMS != ended-1 { // the newest are of the next second
			t.Fatalf("%+v", f)
		}
	}
	if f, counted := r.Figures("nobody"); !counted || f.Plans != 0 || !f.Until.Equal(noon) || f.Until.Sub(f.Since) != time.Hour {
		t.Errorf("%+v", f)
	}
	if n := docs.reads.Load() - before; n != 0 {
		t.Errorf("looking reads the store %d times", n)
	}

	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- r.Run(ctx) }()
	counts := func(plans int64) {
		t.Helper()
		soon, end := context.WithTimeout(ctx, 20*time.Second)
		defer end()
		_ = clock.Every(soon, time.Millisecond, func() bool { f, _ := r.Figures("default"); return f.Plans == plans })
		if f, _ := r.Figures("default"); f.Plans != plans {
			t.Errorf("%d plans, not %d", f.Plans, plans)
		}
	}
	h.plan("late", "complete", 0, noon.Add(-time.Second))
	counts(ended) // at the start
	now.Add(int64(11 * time.Second))
	counts(ended + 1) // looked at
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// TestRules: each rule on both sides of its bound, and no alert without data.
func TestRules(t *testing.T) {
	for name, tt := range map[string]struct{ quiet, firing monitor.Figures }{
		"PlanSuccessLow":    {monitor.Figures{Plans: 10, AtOnce: 8}, monitor.Figures{Plans: 10, AtOnce: 7}},
		"ReplansExhausted":  {monitor.Figures{Plans: 20, AtOnce: 20, Exhausted: 1}, monitor.Figures{Plans: 20, AtOnce: 20, Exhausted: 2}},
		"ContractViolation": {monitor.Figures{Writes: 9}, monitor.Figures{Writes: 9, Violations: 1}},
		"ScriptTimeouts":    {monitor.Figures{Scripts: 20, Timeouts: 1}, monitor.Figures{Scripts: 20, Timeouts: 2}},
		"MemoryLockWait":    {monitor.Figures{LockWaitMS: 2000}, monitor.Figures{LockWaitMS: 2001}},
		"PrincipalMismatch": {monitor.Figures{}, monitor.Figures{Mismatches: 1}},
		"HoldsLate":         {monitor.Figures{}, monitor.Figures{Process: monitor.Process{HoldsLate: 1}}},
		"LedgerLags":        {monitor.Figures{Process: monitor.Process{LedgerBehind: 59 * time.Second}}, monitor.Figures{Process: monitor.Process{LedgerBehind: time.Minute}}},
		"DiskLow":           {monitor.Figures{Process: monitor.Process{Conditions: []string{"clock"}}}, monitor.Figures{Process: monitor.Process{Conditions: []string{"clock", "disk"}}}},
		"WriteAheadLogLong": {monitor.Figures{Process: monitor.Process{Conditions: []string{"disk"}}}, monitor.Figures{Process: monitor.Process{Conditions: []string{"write_ahead_log"}}}},
		"Degraded":          {monitor.Figures{}, monitor.Figures{Process: monitor.Process{Conditions: []string{"ledger"}}}},
	} {
		found := false
		for _, r := range monitor.Rules {
			if r.Name != name {
				continue
			}
			found = true
			if _, firing := r.Firing(tt.quiet); firing {
				t.Errorf("%s: an alert at %+v", name, tt.quiet)
			}
			if seen, firing := r.Firing(tt.firing); !firing || seen == "" {
				t.Errorf("%s: no alert at %+v", name, tt.firing)
			}
			if _, firing := r.Firing(monitor.Figures{}); firing {
				t.Errorf("%s: an alert at nothing", name)
			}
		}
		if !found {
			t.Errorf("there is no rule %s", name)
		}
	}
	if len(monitor.Rules) != 11 {
		t.Errorf("%d rules, of which 11 are tried", len(monitor.Rules))
	}
}

// pager is a server that receives alerts, except while it is down.
type pager struct {
	url string

	mu   sync.Mutex // guards the rest
	down bool
	got  []monitor.Incident
}

func newPager(t *testing.T, secret string) *pager {
	t.Helper()
	p := &pager{}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.mu.Lock()
		defer p.mu.Unlock()
		body, err := io.ReadAll(r.Body)
		if err != nil || p.down {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		mac := hmac.New(sha256.New, []byte(secret))
		fmt.Fprintf(mac, "%s.%s", r.Header.Get("X-Writ-Timestamp"), body)
		if want := "sha256=" + hex.EncodeToString(mac.Sum(nil)); r.Header.Get("X-Writ-Signature") != want {
			t.Errorf("signature %q, want %q", r.Header.Get("X-Writ-Signature"), want)
		}
		var i monitor.Incident
		if err := json.Unmarshal(body, &i); err != nil {
			t.Error(err)
		}
		p.got = append(p.got, i)
	}))
	t.Cleanup(srv.Close)
	p.url = srv.URL
	return p
}

func (p *pager) messages() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	var out []string
	for _, i := range p.got {
		what := "begins"
		if i.Until != nil {
			what = "is over"
		}
		out = append(out, i.Rule+" "+what)
	}
	p.got = nil
	return strings.Join(out, ", ")
}

// TestAlert: receivers are notified once when an incident begins and once when it ends, over
// restarts, receivers that are down, and crashes at the worst moment.
func TestAlert(t *testing.T) {
	h := newHouse(t)
	p := newPager(t, "signed")
	hook := h.receiver("webhook", p.url)
	w := h.watch(hook)
	says := func(what, want string) {
		t.Helper()
		if got := p.messages(); got != want {
			t.Errorf("%s: told %q, want %q", what, got, want)
		}
	}
	h.look(w)
	says("nothing has happened", "")
	h.event("contract_violation", h.now.Add(-time.Minute), map[string]any{})
	p.down = true
	if err := w.Look(t.Context()); err == nil || !strings.Contains(err.Error(), "alert ContractViolation is owed to webhook: webhook: it has too much to do, or is not ready (HTTP 503); ") {
		t.Errorf("of a receiver that is down: %v", err)
	}
	p.down = false
	before, err := os.ReadFile(filepath.Join(h.dir, "alerts.json"))
	if err != nil {
		t.Fatal(err)
	}
	h.look(w)
	says("it begins", "ContractViolation begins")
	h.look(w)
	h.look(h.watch(hook)) // another process
	says("it lasts", "")
	// The process died after the notification, and before its write.
	if err := os.WriteFile(filepath.Join(h.dir, "alerts.json"), before, 0o600); err != nil {
		t.Fatal(err)
	}
	h.look(h.watch(hook))
	says("after a kill", "ContractViolation begins")
	h.now = h.now.Add(2 * time.Hour)
	h.look(h.watch(hook))
	says("it has passed", "ContractViolation is over")
	h.look(w)
	says("it stays over", "")

	h.event("contract_violation", h.now.Add(-time.Minute), map[string]any{})
	h.look(w)
	says("again", "ContractViolation begins")
	h.now = h.now.Add(2 * time.Hour)
	h.look(w)
	says("and again over", "ContractViolation is over")
	_, incidents, err := monitor.ReadStored(h.dir)
	if err != nil || len(incidents) != 2 || incidents[0].Until == nil || incidents[0].Observed != "1 of 1 writes" {
		t.Errorf("%+v, %v", incidents, err)
	}
}

// TestEndReachesSameReceivers: a receiver that is down does not delay the end of an incident for
// others, and does not receive it itself.
func TestEndReachesSameReceivers(t *testing.T) {
	h := newHouse(t)
	p := newPager(t, "signed")
	down := httptest.NewServer(http.NotFoundHandler())
	defer down.Close()
	w := h.watch(h.receiver("webhook", p.url), h.receiver("slack", down.URL))
	h.event("contract_violation", h.now.Add(-time.Minute), map[string]any{})
	if err := w.Look(t.Context()); err == nil || !strings.Contains(err.Error(), "owed to slack: slack: it has nothing of the kind at this address (HTTP 404); alerts are kept for it") {
		t.Errorf("%v", err)
	}
	h.now = h.now.Add(2 * time.Hour)
	h.look(w) // slack is not called any more
	if got := p.messages(); got != "ContractViolation begins, ContractViolation is over" {
		t.Errorf("told %q", got)
	}
}
