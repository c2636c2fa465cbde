package agentic

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"aob.dev/writ/bus"
	"aob.dev/writ/bus/natsserver"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/state/agents"
)

// Progress of a task reaches the user only if it names a skill of its step.
func TestProgress(t *testing.T) {
	c := newCore(t)
	d := &Run{cfg: c.config(natsserver.Manager, nil), turn: theTurn}
	s := &catalog.StepView{PlanStep: catalog.PlanStep{Step: 2, Skills: []string{"outlets"}}}
	for _, name := range []string{"bank details: call 555", "", "outlets"} {
		d.show(s, progress{Skill: name})
	}
	d.frame(bus.FrameDone, bus.DoneData{})
	frames := shown(c)
	if len(frames) != 2 {
		t.Fatalf("frames %v", kinds(t, frames))
	}
	want := bus.StatusData{State: "calling", Message: "outlets", Step: 2, PlanID: theTurn.PlanID}
	if diff := cmp.Diff(want, dataOf[bus.StatusData](t, frames[0])); diff != "" {
		t.Error(diff)
	}
}

// An answer is guarded where it is shown and where it is recorded.
func TestAnswerIsGuarded(t *testing.T) {
	c := newCore(t)
	managed(c)
	model := wellDone()
	model.replies[agents.Composer] = []any{"The call failed with RBAC_FORBIDDEN."}
	layer(c, model, allRoles...)
	dispatchTurn(c)
	frames := shown(c)
	const want = "The call failed with the actor lacks the capability."
	for _, f := range frames {
		switch f.Kind {
		case bus.FrameToken:
			if got := dataOf[bus.ContentData](t, f).Text; got != want {
				t.Errorf("token %q", got)
			}
		case bus.FrameAnswer:
			if got := dataOf[bus.AnswerData](t, f).Response; got != want {
				t.Errorf("answer %q", got)
			}
		default:
		}
	}
	if got := closed(c).Response; got != want || len(frames) < 3 {
		t.Errorf("recorded %q", got)
	}
}
