package recorder_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"aob.dev/writ/bus"
	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/testing/routertest"
	"aob.dev/writ/router/recorder"
	"aob.dev/writ/storage"
)

// The page names every member that is published.
func TestPublicMembersAreDocumented(t *testing.T) {
	page, err := os.ReadFile("../../docs/events.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, member := range recorder.PublicMembers {
		if !strings.Contains(string(page), "`"+member+"`") {
			t.Errorf("docs/events.md does not name the member %s", member)
		}
	}
}

// The published events are of the four kinds, in their order, without anybody's words. A recorder
// that begins again publishes those of the last records again, unchanged.
func TestPublished(t *testing.T) {
	d := documents(t)
	w := routertest.New(t, routertest.Options{})
	w.TwoSteps()
	p := w.Begun("p1", "feed")
	task := p.Started(1)
	w.OK(task.Intent("step.finish", catalog.StepFinish{TaskID: task.TaskID, Status: "insufficient", Reason: "ana-said-why", Suggestion: "ask-another-one"}))
	w.Want(p.Plan(routertest.Steps(2, "feed")), intents.OK)
	w.Want(p.Started(2).Call("other", `{"q":"ana-said-what"}`), intents.TaskScope)
	w.Want(p.Cancel(w.Gateway), intents.OK)
	published := func() (out []bus.Event) {
		f := &follower{Recorder: recorder.New(w.Journal, d, slog.New(slog.DiscardHandler)), t: t, world: w, done: make(chan error, 1)}
		f.Tenants = w.Dir.Tenants
		f.Publish = func(e []bus.Event) { out = append(out, e...) }
		ctx, cancel := context.WithCancel(t.Context())
		f.end = cancel
		go func() { f.done <- f.Run(ctx) }()
		f.caughtUp()
		f.stop()
		return out
	}
	first := published()
	if diff := cmp.Diff(first, published()); diff != "" {
		t.Errorf("again: %s", diff)
	}
	page, err := d.Search(t.Context(), "default", storage.IndexEvents, storage.Query{Sort: "event_id", Limit: 1000})
	w.Must(err)
	var want, got, kinds []string
	for _, doc := range page.Documents {
		var e storedEvent
		w.Must(json.Unmarshal(doc.Body, &e))
		if catalog.EventKind(e.Type) != "" {
			want = append(want, doc.ID)
		}
	}
	for _, e := range first {
		if e.Tenant == "default" {
			got = append(got, e.ID)
		}
		kinds = append(kinds, e.Kind)
		var doc struct {
			EventID, PlanID string
			Payload         map[string]any
		}
		w.Must(json.Unmarshal(e.Body, &doc))
		for member := range doc.Payload {
			if !slices.Contains(recorder.PublicMembers, member) {
				t.Errorf("%s", e.Body)
			}
		}
		if strings.Contains(string(e.Body), "ana-said") || strings.Contains(string(e.Body), "ask-another") || e.At.IsZero() {
			t.Errorf("%s", e.Body)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" || len(want) < 20 || !slices.IsSorted(got) {
		t.Errorf("events: %s", diff)
	}
	for _, kind := range []string{"subagent", "step", "cancel", "memory"} {
		if !slices.Contains(kinds, kind) {
			t.Errorf("none of kind %s", kind)
		}
	}
}
