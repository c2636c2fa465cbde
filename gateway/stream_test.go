package gateway

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"aob.dev/writ/bus"
	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/ratelimit"
)

// sseEvent is an event as a client reads it.
type sseEvent struct {
	id, event string
	frame     event // of data
}

// nextEvent reads one event; io.EOF at the end of the stream.
func nextEvent(t *testing.T, r *bufio.Reader) (sseEvent, error) {
	t.Helper()
	var e sseEvent
	for {
		line, err := r.ReadString('\n')
		if err != nil {
			return e, err
		}
		name, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ": ")
		switch name {
		case "id":
			e.id = value
		case "event":
			e.event = value
		case "data":
			if err := json.Unmarshal([]byte(value), &e.frame); err != nil {
				t.Errorf("data %q: %v", value, err)
			}
			if string(e.frame.Kind) != e.event {
				t.Errorf("event %q has kind %q", e.event, e.frame.Kind)
			}
		case "":
			if e.event != "" {
				return e, nil
			} // a comment
		}
	}
}

// allEvents reads a stream to its end.
func allEvents(t *testing.T, body io.Reader) (out []sseEvent) {
	t.Helper()
	r := bufio.NewReader(body)
	for {
		e, err := nextEvent(t, r)
		if err != nil {
			return out
		}
		out = append(out, e)
	}
}

func kinds(events []sseEvent) (out []string) {
	for _, e := range events {
		out = append(out, e.event)
	}
	return out
}

func TestStream(t *testing.T) {
	var w *world
	w = newWorld(t, completing(&w))
	resp := w.do(t.Context(), "POST", "/agent/run", runBody(`,"stream":true`), nil)
	defer resp.Body.Close()
	if ct := resp.Header.Get("Content-Type"); ct != "text/event-stream" {
		t.Errorf("content type %q", ct)
	}
	events := allEvents(t, resp.Body)
	if d := cmp.Diff([]string{"status", "status", "token", "answer", "done"}, kinds(events)); d != "" {
		t.Fatal(d)
	}
	var first bus.StatusData
	if err := json.Unmarshal(events[0].frame.Data, &first); err != nil {
		t.Fatal(err)
	}
	planID := resp.Header.Get("X-Plan-Id")
	if first.State != "accepted" || first.PlanID != planID || first.SessionID != "s1" || events[0].id != "" {
		t.Errorf("first event %+v, id %q", first, events[0].id)
	}
	for i, e := range events[1:] {
		if i > 0 && e.frame.Seq <= events[i].frame.Seq {
			t.Errorf("sequence does not grow: %d after %d", e.frame.Seq, events[i].frame.Seq)
		}
	}

	// The same turn again: whole, in part, and nothing after its end.
	path := "/agent/plans/" + planID + "/events"
	for _, row := range []struct {
		after string
		want  []string
	}{
		{"", []string{"status", "token", "answer", "done"}},
		{events[2].id, []string{"answer", "done"}},
		{events[3].id, []string{"done"}},
	} {
		resp := w.do(t.Context(), "GET", path, "", http.Header{"Last-Event-Id": {row.after}})
		if d := cmp.Diff(row.want, kinds(allEvents(t, resp.Body))); d != "" {
			t.Errorf("after %q: %s", row.after, d)
		}
		_ = resp.Body.Close()
	}
	if resp := w.call("GET", path, "", http.Header{"Last-Event-Id": {events[4].id}}, nil); resp.StatusCode != http.StatusNoContent {
		t.Errorf("after done: %d, want 204", resp.StatusCode)
	}
	w.refused("GET", path, "", http.Header{"Last-Event-Id": {"yesterday"}}, intents.SchemaInvalid, "")
	w.refused("GET", path, "", http.Header{"X-Api-Key": {appKey}, "X-User-Id": {"carl"}}, intents.NotFound, "")
	w.refused("GET", "/agent/plans/plan_none/events", "", nil, intents.NotFound, "")
}

// TestStreamsHaveShares: an API key at its limit of streams is refused another request until one
// ends, and another key's requests continue.
func TestStreamsHaveShares(t *testing.T) {
	end := make(chan struct{})
	w := newWorld(t, func(bus.PlanDispatch, func(bus.FrameKind, any)) { <-end })
	defer close(end)
	w.gateway.open = ratelimit.NewPlaces(32)
	resp := w.do(t.Context(), "POST", "/agent/run", runBody(`,"stream":true`), nil) //nolint:bodyclose // with the others, below
	path := "/agent/plans/" + resp.Header.Get("X-Plan-Id") + "/events"
	open := []*http.Response{resp}
	for len(open) < 33 {
		resp := w.do(t.Context(), "GET", path, "", nil)
		if resp.StatusCode != http.StatusOK {
			_ = resp.Body.Close()
			break
		}
		open = append(open, resp) //nolint:bodyclose // with the others, below
	}
	if len(open) < 2 || len(open) > 28 {
		t.Errorf("%d streams are open", len(open))
	}
	if p := w.refused("GET", "/v1/me", "", nil, intents.Overloaded, ""); p.Hint == "" {
		t.Errorf("%+v", p)
	}
	if a := w.call("GET", "/v1/me", "", http.Header{"X-Api-Key": {appKey}, "X-User-Id": {"carl"}}, nil); a.StatusCode != http.StatusOK {
		t.Errorf("another key: %d", a.StatusCode)
	}
	for _, resp := range open {
		_ = resp.Body.Close()
	}
	for w.gateway.open.Used() > 0 {
		runtime.Gosched()
	}
}

// A client that disconnects leaves the plan running, and receives the rest when it comes back.
func TestStreamClientClosed(t *testing.T) {
	var w *world
	gone := make(chan struct{})
	w = newWorld(t, func(h bus.PlanDispatch, say func(bus.FrameKind, any)) {
		say(bus.FrameStatus, bus.StatusData{State: "planning"})
		<-gone
		say(bus.FrameStatus, bus.StatusData{State: "executing"})
		completing(&w)(h, say)
	})
	ctx, cancel := context.WithCancel(t.Context())
	resp := w.do(ctx, "POST", "/agent/run", runBody(`,"stream":true`), nil)
	r := bufio.NewReader(resp.Body)
	var last sseEvent
	for last.id == "" {
		var err error
		if last, err = nextEvent(t, r); err != nil {
			t.Fatal(err)
		}
	}
	cancel()
	_ = resp.Body.Close()
	close(gone)

	back := w.do(t.Context(), "GET", "/agent/plans/"+resp.Header.Get("X-Plan-Id")+"/events", "", http.Header{"Last-Event-Id": {last.id}})
	defer back.Body.Close()
	if d := cmp.Diff([]string{"status", "status", "token", "answer", "done"}, kinds(allEvents(t, back.Body))); d != "" {
		t.Error(d)
	}
	if len(w.submits("cancel")) != 0 {
		t.Error("the plan was cancelled")
	}
}

// A stream ends with held; when the turn continues, the rest follows under the same plan.
func TestStreamHeldAndBack(t *testing.T) {
	var w *world
	first := true
	w = newWorld(t, func(h bus.PlanDispatch, say func(bus.FrameKind, any)) {
		if first {
			first = false
			say(bus.FramePendingApproval, bus.PendingApprovalData{PlanID: h.PlanID, Approval: bus.Approval{IntentID: "sha256:1"}})
			return
		}
		completing(&w)(h, say)
	})
	resp := w.do(t.Context(), "POST", "/agent/run", runBody(`,"stream":true`), nil)
	defer resp.Body.Close()
	events := allEvents(t, resp.Body)
	if d := cmp.Diff([]string{"status", "held"}, kinds(events)); d != "" {
		t.Fatal(d)
	}
	planID := resp.Header.Get("X-Plan-Id")
	back := w.do(t.Context(), "GET", "/agent/plans/"+planID+"/events", "", http.Header{"Last-Event-Id": {events[1].id}})
	defer back.Body.Close()
	w.goSilent(planID, 1) // released: no driver has it
	w.gateway.resumeSilent(t.Context())
	if d := cmp.Diff([]string{"status", "token", "answer", "done"}, kinds(allEvents(t, back.Body))); d != "" {
		t.Error(d)
	}
}

// TestStreamPastHolds: a stream from its beginning includes everything up to the intent that
// waits now, or to its end; approvals released since do not end it.
func TestStreamPastHolds(t *testing.T) {
	held := func(say func(bus.FrameKind, any), plan, id string) {
		say(bus.FramePendingApproval, bus.PendingApprovalData{PlanID: plan, Approval: bus.Approval{IntentID: id}})
	}
	for name, tt := range map[string]struct {
		turn func(h bus.PlanDispatch, say func(bus.FrameKind, any))
		end  func(*catalog.PlanView)
		want []string
	}{
		"waits again": {func(h bus.PlanDispatch, say func(bus.FrameKind, any)) {
			held(say, h.PlanID, "sha256:1")
			held(say, h.PlanID, "sha256:2")
			held(say, h.PlanID, heldID)
			say(bus.FrameToken, bus.ContentData{Text: "never"})
		}, func(*catalog.PlanView) {}, []string{"held", "held", "held"}},
		"has ended": {func(h bus.PlanDispatch, say func(bus.FrameKind, any)) {
			held(say, h.PlanID, "sha256:1")
			held(say, h.PlanID, heldID)
			say(bus.FrameAnswer, bus.AnswerData{Response: "Two."})
			say(bus.FrameDone, bus.DoneData{PlanID: h.PlanID, Status: "complete"})
		}, func(p *catalog.PlanView) { p.Status = catalog.PlanComplete }, []string{"held", "held", "answer", "done"}},
	} {
		w := newWorld(t, tt.turn)
		resp := w.do(t.Context(), "POST", "/agent/run", runBody(`,"stream":true`), nil)
		plan := resp.Header.Get("X-Plan-Id")
		allEvents(t, resp.Body)
		_ = resp.Body.Close()
		w.change(plan, tt.end)
		back := w.do(t.Context(), "GET", "/agent/plans/"+plan+"/events", "", nil)
		got := kinds(allEvents(t, back.Body))
		_ = back.Body.Close()
		if d := cmp.Diff(tt.want, got); d != "" {
			t.Errorf("%s: %s", name, d)
		}
	}
}

// A closed plan whose frames are gone still reports its end.
func TestStreamOfPlanWithoutFrames(t *testing.T) {
	w := newWorld(t, func(bus.PlanDispatch, func(bus.FrameKind, any)) {}, func(_ *Config, p *pace) { p.wait = time.Millisecond })
	for _, row := range []struct {
		end  func(*catalog.PlanView)
		want []string
		data string
	}{
		{func(p *catalog.PlanView) { p.Status, p.Response = catalog.PlanComplete, "Two." }, []string{"answer", "done"}, `{"response":"Two."}`},
		{func(p *catalog.PlanView) {
			p.Status, p.Failure = catalog.PlanFailed, &catalog.Failure{Reason: "no", CompletedSteps: []int{1}}
		}, []string{"error", "done"}, `{"reason":"no","failure":{"reason":"no","completed_steps":[1]}}`},
	} {
		var run runReply
		w.call("POST", "/agent/run", runBody(""), nil, &run)
		w.change(run.PlanID, row.end)
		resp := w.do(t.Context(), "GET", "/agent/plans/"+run.PlanID+"/events", "", nil)
		events := allEvents(t, resp.Body)
		_ = resp.Body.Close()
		if d := cmp.Diff(row.want, kinds(events)); d != "" {
			t.Fatal(d)
		}
		if got := string(events[0].frame.Data); got != row.data {
			t.Errorf("data %s, want %s", got, row.data)
		}
	}
}

// Invalid frames are not shown, and no agent can write lines of the stream.
func TestStreamOfNonsense(t *testing.T) {
	w := newWorld(t, func(_ bus.PlanDispatch, say func(bus.FrameKind, any)) {
		say("", "no kind")
		say("token\nevent: done", bus.ContentData{Text: "x\n\nid: 9\n\n"})
		say(bus.FrameDone, "not an object")
	})
	resp := w.do(t.Context(), "POST", "/agent/run", runBody(`,"stream":true`), nil)
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for line := range strings.Lines(string(raw)) {
		if name, ok := strings.CutPrefix(line, "event: "); ok {
			names = append(names, strings.TrimSpace(name))
		}
	}
	if d := cmp.Diff([]string{"status", "unknown", "done"}, names); d != "" {
		t.Errorf("%s\n%s", d, raw)
	}
}
