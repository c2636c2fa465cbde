package e2e

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"aob.dev/writ/agentic/model"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/datadir"
	"aob.dev/writ/state/agents"
	"aob.dev/writ/storage"
	"aob.dev/writ/storage/sqlite"
	"aob.dev/writ/upkeep"
)

// Words of a request that nothing may keep.
const (
	addedWord = "Anas-added-instruction"
	mailWord  = "ana@anas-mail.example"
)

// forgets checks that no file of a writ that has stopped has the words, and that no record has the
// texts that came with its intent.
func (x *machine) forgets(words ...string) {
	x.t.Helper()
	x.nowhere(words...)
	records, err := sqlite.OpenRecords(x.t.Context(), filepath.Join(x.dir, "journal"))
	if err != nil {
		x.t.Fatal(err)
	}
	defer records.Close()
	gone := 0
	for rec, err := range records.Scan(x.t.Context(), 0) {
		if err != nil {
			x.t.Fatal(err)
		}
		if _, there := rec.Parts[storage.PartTransient]; there {
			x.t.Errorf("record %d has its texts still", rec.Position)
		}
		if _, there := rec.Erased[storage.PartTransient]; there {
			gone++
		}
	}
	if gone == 0 {
		x.t.Error("no record has lost texts: the test looks for nothing")
	}
}

// nowhere checks that no file has the words.
func (x *machine) nowhere(words ...string) {
	x.t.Helper()
	err := filepath.WalkDir(x.dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return err
		}
		text, err := os.ReadFile(path)
		for _, word := range words {
			if bytes.Contains(text, []byte(word)) {
				x.t.Errorf("%s is in %s", word, path)
			}
		}
		return err
	})
	if err != nil {
		x.t.Fatal(err)
	}
}

// TestTransientTexts: the model sees what came with the request for its prompts, also after a crash.
// Once the plan has ended no file has it, nor does a writ that starts again.
func TestTransientTexts(t *testing.T) {
	t.Parallel()
	g, m := newGate(), porter("parcel_weigh")
	write := m.plan
	m.plan = func(in planning) model.Call {
		g.pass(context.Background())
		return write(in)
	}
	d := serveDepot(t, nil)
	x := boot(t, m, d.skills)
	x.headers = map[string]string{"X-Added-Instruction": addedWord, "X-User-Email": mailWord}
	id := x.ask(accepted)
	g.wait(t)
	x.kill()
	x.nowhere(addedWord, mailWord) // it is encrypted
	close(g.open)
	x.start()
	if v := x.finished(id); v.Status != catalog.PlanComplete || v.Epoch != 2 {
		t.Errorf("plan %+v", v)
	}
	planned := 0
	m.mu.Lock()
	for _, r := range m.requests {
		if context := r.Messages[0].Text; !strings.Contains(context, "[Added instruction]\n"+addedWord) || !strings.Contains(context, "\nUser email: "+mailWord+"\n") {
			t.Errorf("%s sees the context %s", r.Agent, context)
		}
		if r.Agent == agents.Planner {
			planned++
		}
	}
	m.mu.Unlock()
	if planned < 2 {
		t.Errorf("%d requests of the planner", planned)
	}
	x.end(syscall.SIGTERM)
	x.forgets(addedWord, mailWord)
	x.start()
	x.plan(id)
	x.end(syscall.SIGTERM)
	x.forgets(addedWord, mailWord)
}

// TestTransientLost: an open plan whose texts are gone, as after a restore with newer keys, is found by
// fsck, and ends as failed at the next start. Then the log explains it.
func TestTransientLost(t *testing.T) {
	t.Parallel()
	g, m := newGate(), porter("parcel_weigh")
	write := m.plan
	m.plan = func(in planning) model.Call {
		g.pass(context.Background())
		return write(in)
	}
	x := boot(t, m, serveDepot(t, nil).skills)
	x.headers = map[string]string{"X-Added-Instruction": addedWord}
	id := x.ask(accepted)
	g.wait(t)
	x.kill()
	close(g.open)
	j, err := sqlite.OpenJournal(t.Context(), datadir.Journal(x.dir), sqlite.JournalOptions{})
	if err != nil {
		t.Fatal(err)
	}
	opened := storage.NoPosition
	for rec, err := range j.Scan(t.Context(), 0) {
		if _, there := rec.Parts[storage.PartTransient]; there {
			opened = rec.Position
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(j.EraseTransient(t.Context(), opened), j.Close()); err != nil {
		t.Fatal(err)
	}
	h, err := upkeep.Fsck(t.Context(), x.dir, nil)
	if err != nil || !h.OnlyUnexplained() || h.FirstBad.Position != opened || !slices.Equal(h.Unexplained[0].Parts, []string{storage.PartTransient}) || !strings.HasSuffix(h.FirstBad.Reason, h.Unexplained[0].Do) {
		t.Errorf("%+v, %v, %v", h, h.FirstBad, err)
	}
	x.start()
	if v := x.finished(id); v.Status != catalog.PlanFailed || len(v.Steps) > 0 {
		t.Errorf("plan %+v", v)
	}
	x.end(syscall.SIGTERM) // a checkpoint covers the end
}
