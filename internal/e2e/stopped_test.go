//go:build linux

package e2e

import (
	"bytes"
	"fmt"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"aob.dev/writ/intents/catalog"
)

// stop has the machine's process stand still, and returns when it does.
func (x *machine) stop() {
	x.t.Helper()
	if err := x.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		x.t.Fatal(err)
	}
	look := time.NewTicker(5 * time.Millisecond)
	defer look.Stop()
	for deadline := time.After(patience); ; {
		raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", x.cmd.Process.Pid))
		if err != nil {
			x.t.Fatal(err)
		}
		if _, state, _ := bytes.Cut(raw, []byte(") ")); state[0] == 'T' {
			return
		}
		select {
		case <-look.C:
		case <-deadline:
			x.t.Fatal("writ up does not stop")
		}
	}
}

func (x *machine) goOn() {
	x.t.Helper()
	if err := x.cmd.Process.Signal(syscall.SIGCONT); err != nil {
		x.t.Fatal(err)
	}
}

// TestRunStopped: writ stands still while a node reads and while one acts, and the servers answer
// meanwhile. It goes on where it was: each effect happens once, and the run ends as any.
func TestRunStopped(t *testing.T) {
	t.Parallel()
	fetch, upload := newGate(), newGate()
	l := serveLab(t, map[string]*gate{"fetch": fetch, "upload": upload})
	x := boot(t, echoAgent(), l.skills, "--agents", registryDir(t, map[string]string{"agents/teller.yaml": tellerFile, "workflows/intake.yaml": intake}))
	ben, _, _ := x.holds("lab.notify")
	me := x.as("ana")
	id := x.startRun(me, "intake", map[string]any{"first": 3})
	for _, g := range []*gate{fetch, upload} {
		g.wait(t)
		x.stop()
		close(g.open) // the server answers nobody who listens
		x.goOn()
	}
	x.runUntil(me, id, "it waits", waits("thank"))
	x.stop()
	x.goOn()
	held := x.inbox(me)
	if len(held) != 1 {
		t.Fatalf("held %+v", held)
	}
	if _, p := x.decide(ben, held[0].IntentID, catalog.DecisionApprove, ""); p.Code != "" {
		t.Fatalf("%+v", p)
	}
	v := x.runUntil(me, id, "it ends", ended)
	if d := cmp.Diff([]string{"fetch done", "sum done", "upload done", "thank done", "alarm skipped", "tell done"}, nodes(v)); d != "" || v.Status != catalog.PlanComplete || v.Epoch > 2 {
		t.Errorf("%s %+v, epoch %d %s", v.Status, v.Failure, v.Epoch, d)
	}
	if ids, said := l.uploaded(), l.notifications(); len(ids) != 1 || len(said) != 1 {
		t.Errorf("uploads %v, said %q", ids, said)
	}
	if list := x.records(id); len(list) == 0 {
		t.Error("no intents")
	}
}
