package agentic

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"aob.dev/writ/agentic/model"
	"aob.dev/writ/bus"
	"aob.dev/writ/bus/natsserver"
	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/state/agents"
)

// ignoring adapts a Serve method to core.serve.
func ignoring(serve func(context.Context, chan<- struct{}) error) func(context.Context, bus.Conn, chan<- struct{}) error {
	return func(ctx context.Context, _ bus.Conn, ready chan<- struct{}) error { return serve(ctx, ready) }
}

// layer starts roles of the agentic layer over a core.
func layer(c *core, m model.Model, roles ...string) {
	c.t.Helper()
	for _, role := range roles {
		cfg := c.config(role, m)
		serve := map[string]func(context.Context, chan<- struct{}) error{
			natsserver.Task: NewTasks(cfg).Serve, natsserver.Planner: NewPlanner(cfg).Serve, natsserver.Manager: NewManager(cfg).Serve,
		}[role]
		c.serve(role, ignoring(serve))
	}
}

var allRoles = []string{natsserver.Task, natsserver.Planner, natsserver.Manager}

// dispatchTurn gives the turn to the manager, as a gateway does.
func dispatchTurn(c *core, images ...string) {
	c.t.Helper()
	turn := c.turn()
	raw, err := c.connect(natsserver.Gateway).Request(c.t.Context(), bus.Agent("manager"), marshal(bus.PlanDispatch{
		TurnRef: turn.TurnRef, Driver: "d1", Images: images,
	}))
	if err != nil {
		c.t.Fatal(err)
	}
	var r bus.PlanDispatchReply
	if err := json.Unmarshal(raw, &r); err != nil || !r.Accepted {
		c.t.Fatalf("%+v, error %v", r, err)
	}
}

// shown returns the frames of the turn up to the one that ends its stream.
func shown(c *core) []bus.TurnFrame {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.t.Context(), patience)
	defer cancel()
	var out []bus.TurnFrame
	err := c.connect(natsserver.Frames).Frames(ctx, bus.Turn(theTurn.Tenant, theTurn.TurnID), 0, func(f bus.Frame) bool {
		var t bus.TurnFrame
		if err := json.Unmarshal(f.Data, &t); err != nil {
			c.t.Error(err)
		}
		out = append(out, t)
		return t.Kind != bus.FrameDone && t.Kind != bus.FramePendingApproval
	})
	if err != nil || ctx.Err() != nil {
		c.t.Fatalf("after %d frames: %v, intents %v", len(out), err, types(c.allPlaced()))
	}
	return out
}

// kinds abbreviates frames: a status by its state.
func kinds(t *testing.T, frames []bus.TurnFrame) []string {
	t.Helper()
	var out []string
	for _, f := range frames {
		kind := string(f.Kind)
		if f.Kind == bus.FrameStatus {
			kind = dataOf[bus.StatusData](t, f).State
		}
		out = append(out, kind)
	}
	return out
}

func dataOf[T any](t *testing.T, f bus.TurnFrame) T {
	t.Helper()
	var v T
	if err := json.Unmarshal(f.Data, &v); err != nil {
		t.Fatal(err)
	}
	return v
}

// managed has the core answer a manager with success throughout.
func managed(c *core) {
	working(c)
	answerTransitions(c, catalog.PlanView{PlanID: "plan_1", Status: catalog.PlanPlanning, Task: "How many outlets are there?"})
	c.on("soul.get", refuse(intents.NotFound, "no soul"))
	c.on("session.get", done(catalog.Session{Status: catalog.SessionActive}))
	c.on("session.append", done(catalog.Session{}))
	c.on("read_memory", done(catalog.ReadMemoryResult{Key: taskKey, Data: json.RawMessage(`{"count":10}`)}))
}

// closed returns the plan.close that ended the plan.
func closed(c *core) catalog.PlanClose {
	c.t.Helper()
	all := c.ofType("plan.close")
	if len(all) != 1 {
		c.t.Fatalf("%d times plan.close among %v", len(all), types(c.allPlaced()))
	}
	var args catalog.PlanClose
	if err := json.Unmarshal(all[0].Args, &args); err != nil {
		c.t.Fatal(err)
	}
	return args
}

func TestTurn(t *testing.T) {
	c := newCore(t)
	managed(c)
	layer(c, wellDone(), allRoles...)
	dispatchTurn(c)
	frames := shown(c)
	if d := cmp.Diff([]string{"planning", "executing", "step_started", "calling", "step_done", "token", "answer", "done"}, kinds(t, frames)); d != "" {
		t.Errorf("frames (-want +got):\n%s", d)
	}
	want := []string{"plan.claim", "soul.get", "session.get", "skill.find", "skill.load", "plan", "step", "skill.load", "skill.call", "write_memory", "step.finish", "read_memory", "session.append", "plan.close"}
	list := c.allPlaced()
	if d := cmp.Diff(want, types(list)); d != "" {
		t.Errorf("intents (-want +got):\n%s", d)
	}
	if d := cmp.Diff(catalog.PlanClose{PlanID: "plan_1", Epoch: 1, Status: "complete", Response: "There are ten.", Usage: []catalog.Usage{used(agents.Composer, 1)}}, closed(c)); d != "" {
		t.Errorf("plan.close (-want +got):\n%s", d)
	}
	answer := dataOf[bus.AnswerData](t, frames[len(frames)-2])
	if answer.Response != "There are ten." || string(answer.Data) != `{"count":10}` {
		t.Errorf("answer %+v", answer)
	}
	if d := dataOf[bus.DoneData](t, frames[len(frames)-1]); d.Status != "complete" || d.PlanID != "plan_1" {
		t.Errorf("done %+v", d)
	}
	// The manager never touches a skill, and signs only its own intents.
	for _, o := range list {
		of := map[string]intents.Role{
			"skill.find": intents.RolePlanner, "plan": intents.RolePlanner, "skill.call": intents.RoleTask, "write_memory": intents.RoleTask,
			"step.finish": intents.RoleTask,
		}
		role, other := of[o.Type]
		if !other && o.Type != "skill.load" {
			role = intents.RoleManager
		}
		if o.Type != "skill.load" && o.Role != role || o.Type == "skill.load" && o.Role == intents.RoleManager {
			t.Errorf("%s was signed by a %s key", o.Type, o.Role)
		}
	}
}

// TestLargeAnswer: a result that is too large to be inline is stored, and the answer names where
// it can be read; if it may not be stored, the available part is shown.
func TestLargeAnswer(t *testing.T) {
	file := &catalog.Reference{FileID: "f_1", SizeBytes: 60_000, SHA256: intents.Digest(nil), Sample: []string{"[", "1"}}
	kept := "cas://" + intents.Digest([]byte("kept"))
	for name, tt := range map[string]struct {
		put  func(placed) *intents.Answer
		want any
	}{
		"kept": {
			done(catalog.ArtifactPutResult{Artifact: kept, SizeBytes: 60_001}),
			bus.ArtifactData{
				Artifact: kept, SizeBytes: 60_001, MediaType: "application/json", Sample: file.Sample,
				URL: "/agent/artifacts/" + intents.Digest([]byte("kept")),
			},
		},
		"refused": {refuse(intents.PolicyDenied, "not here"), file},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCore(t)
			managed(c)
			c.on("read_memory", done(catalog.ReadMemoryResult{Key: taskKey, Reference: file}))
			c.on("artifact.put", tt.put)
			layer(c, wellDone(), allRoles...)
			dispatchTurn(c)
			frames := shown(c)
			want, err := json.Marshal(tt.want)
			if err != nil {
				t.Fatal(err)
			}
			if a := dataOf[bus.AnswerData](t, frames[len(frames)-2]); string(a.Data) != string(want) {
				t.Errorf("data %s, want %s", a.Data, want)
			}
			puts := c.ofType("artifact.put")
			if len(puts) != 1 || puts[0].Role != intents.RoleManager || !strings.Contains(string(puts[0].Args), `"from":"f_1"`) {
				t.Fatalf("%+v", puts)
			}
			if got := closed(c); got.Status != "complete" {
				t.Errorf("%+v", got)
			}
		})
	}
}

// TestClaimRefused: another driver runs the plan. Nothing is signed and nothing is shown.
func TestClaimRefused(t *testing.T) {
	c := newCore(t)
	managed(c)
	c.on("plan.claim", refuse(intents.MalformedArgs, "the epoch is taken"))
	cfg := c.config(natsserver.Manager, wellDone())
	m := NewManager(cfg)
	turn := c.turn()
	m.run(t.Context(), bus.PlanDispatch{TurnRef: turn.TurnRef, Driver: "d1"})
	if d := cmp.Diff([]string{"plan.claim"}, types(c.allPlaced())); d != "" {
		t.Errorf("intents (-want +got):\n%s", d)
	}
	// The next frame is the first of the turn.
	(&Run{cfg: cfg, turn: turn}).frame(bus.FrameDone, bus.DoneData{PlanID: "plan_1", Status: "test"})
	if d := cmp.Diff([]string{"done"}, kinds(t, shown(c))); d != "" {
		t.Errorf("frames (-want +got):\n%s", d)
	}
}

// TestNoPlanner: the plan is closed, and the user gets an explanation in plain words.
func TestNoPlanner(t *testing.T) {
	c := newCore(t)
	managed(c)
	layer(c, says(map[string][]any{agents.Composer: {"Nobody can plan this now."}}), natsserver.Manager)
	dispatchTurn(c)
	frames := shown(c)
	if d := cmp.Diff([]string{"planning", "error", "done"}, kinds(t, frames)); d != "" {
		t.Errorf("frames (-want +got):\n%s", d)
	}
	want := catalog.PlanClose{PlanID: "plan_1", Epoch: 1, Status: "failed", Failure: &catalog.Failure{Reason: "the planner does not answer", CompletedSteps: []int{}}, Usage: []catalog.Usage{used(agents.Composer, 1)}}
	if d := cmp.Diff(want, closed(c)); d != "" {
		t.Errorf("plan.close (-want +got):\n%s", d)
	}
	e := dataOf[bus.ErrorData](t, frames[1])
	var f catalog.Failure
	if err := json.Unmarshal(e.Failure, &f); err != nil || f.Reason != "the planner does not answer" || e.Reason != "Nobody can plan this now." {
		t.Errorf("error %+v", e)
	}
	if d := dataOf[bus.DoneData](t, frames[2]); d.Status != "failed" {
		t.Errorf("done %+v", d)
	}
}

// TestNoModel: the same without a model to write it.
func TestNoModel(t *testing.T) {
	c := newCore(t)
	managed(c)
	layer(c, says(nil), allRoles...)
	dispatchTurn(c)
	frames := shown(c)
	if d := cmp.Diff([]string{"planning", "error", "done"}, kinds(t, frames)); d != "" {
		t.Errorf("frames (-want +got):\n%s", d)
	}
	if e := dataOf[bus.ErrorData](t, frames[1]); e.Reason != "I could not complete this request: the model could not answer: nothing is scripted for composer." {
		t.Errorf("error %+v", e)
	}
}

// TestCloseRefused: a client that waits for the turn still learns that it has ended.
func TestCloseRefused(t *testing.T) {
	c := newCore(t)
	managed(c)
	c.on("plan.close", refuse(intents.MalformedArgs, "the plan is over"))
	layer(c, wellDone(), allRoles...)
	dispatchTurn(c)
	frames := shown(c)
	if got := kinds(t, frames); !slices.Equal(got[len(got)-2:], []string{"error", "done"}) || slices.Contains(got, "answer") {
		t.Errorf("frames %v", got)
	}
}

// TestInternalError: an error that is for the log alone is told by no model.
func TestInternalError(t *testing.T) {
	c := newCore(t)
	managed(c)
	c.on("read_memory", done("no result"))
	m := wellDone()
	layer(c, m, allRoles...)
	dispatchTurn(c)
	frames := shown(c)
	if e := dataOf[bus.ErrorData](t, frames[len(frames)-2]); !strings.Contains(e.Reason, internalError) || len(m.requests(agents.Composer)) != 0 {
		t.Errorf("told %q", e.Reason)
	}
}
