package recorder_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/testing/routertest"
	"aob.dev/writ/router/recorder"
	"aob.dev/writ/schemas"
	"aob.dev/writ/storage"
)

// strict is a store that accepts what its schemas allow, and retains the last.
type strict struct {
	storage.Documents
	mu   sync.Mutex // guards last
	last map[string]storage.Document
}

func (s *strict) check(index string, doc storage.Document) error {
	schema, err := schemas.Storage(index)
	if err != nil {
		return err
	}
	if v := schema.ValidateBytes(doc.Body); len(v) > 0 {
		return &storage.SchemaError{Index: index, Pointer: v[0].Pointer, Reason: v[0].Reason}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last[index+"/"+doc.ID] = doc
	return nil
}

func (s *strict) Project(_ context.Context, _, index string, p storage.Projection) error {
	for _, d := range slices.Concat(p.Put, p.Created) {
		if err := s.check(index, d); err != nil {
			return err
		}
	}
	return nil
}

func (*strict) Search(context.Context, string, string, storage.Query) (storage.Page, error) {
	return storage.Page{}, nil
}

// projects runs a recorder over all records of a world.
func projects(w *routertest.World) {
	w.Helper()
	r := recorder.New(w.Journal, &strict{last: map[string]storage.Document{}}, slog.New(slog.DiscardHandler))
	ctx, cancel := context.WithCancel(w.Context())
	done := make(chan error, 1)
	go func() {
		done <- r.Run(ctx)
		cancel()
	}()
	if err := r.Reach(ctx, w.Journal.Next()); err != nil {
		w.Fatalf("the recorder has stopped: %v", <-done)
	}
	cancel()
	w.Must(<-done)
}

// No report of an executor may stop the recorder, which would end the process, and every later one
// at the same record.
func TestRecorderOutlivesAnExecutorsReport(t *testing.T) {
	for name, report := range map[string]intents.Report{
		"long reason": {Status: intents.Failed, Code: intents.ContractViolation, Reason: strings.Repeat("x", 5000)},
		"code":        {Status: intents.Failed, Code: "no code of ours", Reason: "x"},
		"facts": {Status: intents.Failed, Code: intents.ExecutorFailed, Reason: "x", Events: []intents.ReportedEvent{
			routertest.Event("skill.called", `{"skill_id":"`+strings.Repeat("x", 200)+`"}`),
			routertest.Event("python_script.executed", `{"script_hash":"none"}`), routertest.Event("Not An Event", `{}`), routertest.Event("list", `[]`),
		}},
	} {
		t.Run(name, func(t *testing.T) {
			w := routertest.New(t, routertest.Options{})
			w.Pin("feed", catalog.Once)
			task := w.Begun("p1", "feed").Started(1)
			w.Bus.On("skill.call", routertest.Always(report))
			w.Bus.On("write_memory", routertest.Always(report))
			task.Call("feed", `{}`)
			task.Write("result")
			projects(w)
		})
	}
}

// Intents with an effect, and held ones, need no step.
func TestRecorderProjectsIntentsWithoutAStep(t *testing.T) {
	w := routertest.New(t, routertest.Options{})
	w.Pin("feed", catalog.Once)
	w.Pin("held", catalog.Pure)
	w.Approval(`{"skills":["held"]}`, "zoe")
	w.Begun("p1", "feed")
	for skill, code := range map[string]intents.Code{"feed": intents.OK, "held": intents.ApprovalRequired} {
		w.Want(w.Do(routertest.Intent{
			By: w.Workflow, Type: "skill.call", Args: catalog.SkillCall{Skill: skill, Input: json.RawMessage(`{}`)},
			Ctx: intents.Context{PlanID: routertest.PlanID("p1")},
		}), code)
	}
	projects(w)
}
