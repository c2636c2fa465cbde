package router_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/testing/routertest"
	"aob.dev/writ/storage"
)

// TestTranscript: a task reads what the calls of earlier tasks of its step asked for and their
// results, and no other intents; the record has the digest alone.
func TestTranscript(t *testing.T) {
	w := routertest.New(t, routertest.Options{})
	w.Pin("pay", catalog.Once)
	w.Bus.On("transcript.get", func(_ context.Context, c routertest.Call) intents.Report { return report(t, c) })
	p := w.Begun("p1", "pay", "pay")
	call := func(task *routertest.Task, n, at string) *intents.Answer {
		o := task.CallIntent("pay", `{"n":`+n+`}`)
		o.Ctx.Call = at
		return w.Do(o)
	}
	w.Bus.On("skill.call", routertest.Always(routertest.Done(catalog.SkillCallResult{Output: []byte(`"secret"`)})))
	first := p.Started(1)
	done := w.Want(call(first, "1", "1.0"), intents.OK)
	unnumbered := w.Want(first.Call("pay", `{"n":9}`), intents.OK)
	w.Bus.On("skill.call", routertest.Always(routertest.Failed(intents.ExecutorFailed)))
	failed := w.Want(call(first, "2", "1.1"), intents.ExecutorFailed)
	w.Want(p.Claim(), intents.OK)
	task := p.Started(1)
	get := func(task *routertest.Task, ids ...string) *intents.Answer {
		return w.Do(task.Intent("transcript.get", catalog.TranscriptGet{IntentIDs: ids}))
	}
	a := w.Want(get(task, failed.IntentID, done.IntentID), intents.OK)
	got := routertest.Result[catalog.TranscriptGetResult](w, a)
	if len(got.Calls) != 2 || got.Calls[0].Call != "1.1" || got.Calls[0].Code != intents.ExecutorFailed || got.Calls[1].Status != "done" ||
		!strings.Contains(string(got.Calls[1].Result), "secret") || string(got.Calls[1].Args) != `{"input":{"n":1},"skill":"pay"}` {
		t.Errorf("%+v", got)
	}
	h, err := w.Journal.Holder(t.Context(), *a.Position)
	w.Must(err)
	raw, err := json.Marshal(w.Records()[h.Outcome])
	w.Must(err)
	if bytes.Contains(raw, []byte("secret")) || !bytes.Contains(w.Records()[h.Outcome].Parts[storage.PartResult], []byte(intents.Digest(a.Outcome.Result))) {
		t.Errorf("the record is %s", raw)
	}
	w.Want(get(task, unnumbered.IntentID), intents.MalformedArgs)
	task.Done()
	w.Want(get(p.Started(2), done.IntentID), intents.MalformedArgs)
}

// report is what the executor of plans reports.
func report(t *testing.T, c routertest.Call) intents.Report {
	t.Helper()
	var calls []catalog.TranscriptCall
	if len(c.Ticket.Inputs) != 1 {
		t.Fatalf("inputs %+v", c.Ticket.Inputs)
	}
	if err := json.Unmarshal(c.Ticket.Inputs[0].Value, &calls); err != nil {
		t.Fatal(err)
	}
	return routertest.Done(catalog.TranscriptGetResult{Calls: calls})
}

// TestTranscriptWaits: it waits for calls that are being executed together, not for each as long as
// for one.
func TestTranscriptWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := routertest.New(t, routertest.Options{})
		w.Pin("pay", catalog.Once)
		w.Data("approval", `{"once":false}`)
		w.Bus.On("transcript.get", func(_ context.Context, c routertest.Call) intents.Report { return report(t, c) })
		end := make(chan struct{})
		w.Bus.On("skill.call", func(context.Context, routertest.Call) intents.Report {
			<-end
			return routertest.Done(catalog.SkillCallResult{Output: []byte(`1`)})
		})
		p := w.Begun("p1", "pay")
		task := p.Started(1)
		var calls sync.WaitGroup
		ids := make([]string, 3)
		for n := range ids {
			o := task.CallIntent("pay", fmt.Sprintf(`{"n":%d}`, n))
			o.Ctx.Call = fmt.Sprintf("1.%d", n)
			raw, id := w.SignID(o)
			ids[n] = id
			calls.Go(func() { w.Send(raw) })
		}
		synctest.Wait()
		w.Want(p.Claim(), intents.OK)
		began := time.Now()
		a := w.Want(w.Do(p.Started(1).Intent("transcript.get", catalog.TranscriptGet{IntentIDs: ids})), intents.OK)
		if waited := time.Since(began); waited != 10*time.Second {
			t.Errorf("waited %s", waited)
		}
		for _, c := range routertest.Result[catalog.TranscriptGetResult](w, a).Calls {
			if c.Status != "open" || c.Reason == "" {
				t.Errorf("%+v", c)
			}
		}
		close(end)
		calls.Wait()
	})
}
