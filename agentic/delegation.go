package agentic

import (
	"encoding/json"
	"slices"
	"time"

	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/bus"
)

// Delegations travel between the roles (writ.agent.<role>). They carry text,
// results, public keys and the turn's grant; without a role's key they carry no
// authority.

// placeRequest asks for a planner. Which process it is must be known before it
// begins: fresh grants go to that one alone.
type placeRequest struct{}

// placeReply names it.
type placeReply struct {
	Instance string `json:"instance"`
}

// planRequest asks a planner for a plan or a revision.
type planRequest struct {
	Turn      Turn   `json:"turn"`
	Task      string `json:"task"`
	Soul      string `json:"soul,omitempty"`
	Epoch     int    `json:"epoch"`
	Revision  int    `json:"revision"` // the one to write
	FirstStep int    `json:"first_step"`
	Agents    bool   `json:"agents,omitempty"` // there are some that its steps may name
	soFar
}

// soFar is what became of a plan before a revision, as the planner's model reads it.
type soFar struct {
	Completed []stepResult       `json:"completed,omitempty"`
	Waiting   []catalog.PlanStep `json:"waiting,omitempty"` // for people, say: they stay in the plan
	Failed    *failedStep        `json:"failed,omitempty"`
	Beside    []failedStep       `json:"also_failed,omitempty"` // that ran beside it
	Remaining []catalog.PlanStep `json:"remaining,omitempty"`
}

// staying are the steps that a revision leaves as they are.
func (f soFar) staying() []catalog.PlanStep {
	out := slices.Clone(f.Waiting)
	for _, c := range f.Completed {
		out = append(out, c.Step)
	}
	return out
}

// room is how many steps the revision may have.
func (f soFar) room() int { return catalog.MaxSteps - len(f.staying()) }

// stepResult is the result of a step as a model reads it. Of a Partial one, which is
// too large to show, Result is the first rows, and Rows how many there are in all,
// where that is known.
type stepResult struct {
	Step    catalog.PlanStep `json:"step"`
	Result  json.RawMessage  `json:"result,omitempty"`
	Partial bool             `json:"partial,omitempty"`
	Rows    int              `json:"rows,omitempty"`
}

// failedStep says why a plan is revised.
type failedStep struct {
	Step       catalog.PlanStep    `json:"step"`
	Trigger    string              `json:"trigger"` // contract_violation, insufficient, failed, rejected, interrupted
	Reason     string              `json:"reason"`
	Suggestion string              `json:"suggestion,omitempty"`
	Facts      []catalog.OrderFact `json:"facts,omitempty"` // orders with effects of all steps that are not done
}

// planReply is a planner's answer: the plan as its order left it, and the answer of a
// plan without steps. Without a plan the request is infeasible, and Reason says why.
type planReply struct {
	Plan   *catalog.PlanView `json:"plan,omitempty"`
	Answer string            `json:"answer,omitempty"`
	Usage  []catalog.Usage   `json:"usage,omitempty"` // that no order of the planner has
	Reason string            `json:"reason,omitempty"`
	Error  string            `json:"error,omitempty"` // the planner itself failed
}

// taskRequest is the first delegation to a task: make a key for this step.
type taskRequest struct {
	Turn Turn         `json:"turn"`
	Step catalog.Step `json:"step"` // without jwk and pop
}

// taskReply has the key, its proof of possession, and the process where the task
// waits.
type taskReply struct {
	Step     catalog.Step `json:"step"`
	Instance string       `json:"instance"`
	Error    string       `json:"error,omitempty"`
}

// runRequest is the second delegation to a task: its step is committed, so the task
// begins.
type runRequest struct {
	Turn     Turn             `json:"turn"`
	TaskID   string           `json:"task_id"`
	UserTask string           `json:"user_task"`
	Soul     string           `json:"soul,omitempty"`
	Revision int              `json:"revision"`
	Step     catalog.PlanStep `json:"step"`
	Inputs   []stepInput      `json:"inputs,omitempty"`
	Agent    string           `json:"agent,omitempty"` // that works; empty: a planner's step
	Epoch    int              `json:"epoch"`
	Route    *catalog.Route   `json:"route,omitempty"` // how the gate has chosen the agent; nil: it was named
	Ask      string           `json:"ask,omitempty"`   // path of the call that asked the agent; empty: the step's own task
	Deadline string           `json:"deadline"`
	Tokens   int              `json:"tokens,omitempty"` // that earlier tasks of the step used
	// Calls of earlier tasks of the step, and Effects of other steps that are not done.
	Calls   []catalog.ToldCall  `json:"calls,omitempty"`
	Effects []catalog.OrderFact `json:"effects,omitempty"`
	// Order is what the task of a node of a run has to seal; nil: the step is none.
	Order  *catalog.NodeOrder `json:"order,omitempty"`
	DryRun bool               `json:"dry_run,omitempty"` // of a shadow: the order is decided, and sent nowhere
	Kept   *catalog.KeptNode  `json:"kept,omitempty"`    // of a replay: the task ends as the node did, and seals nothing else

	say  func(progress)          // to who asked; nil: nobody listens
	told *catalog.AgentGetResult // the agent, where who asked was told it
	busy *time.Duration          // for who asked: how long the model and the calls took
}

// stepInput is the result of an earlier step, by its memory key.
type stepInput struct {
	Step int    `json:"step"`
	Key  string `json:"key"`
}

// Results of a task, as its reply says them.
const (
	taskDone         = "done"
	taskInsufficient = "insufficient"
	taskFailed       = "failed"
	taskViolation    = "contract_violation"
	taskHeld         = "held"
	taskUnanswered   = "unanswered" // an order of it has no answer: the step is to go on from the record
)

// progress is what a task says while it works, for display.
type progress struct {
	Skill  string           `json:"skill,omitempty"`  // that it calls now
	Text   *bus.ContentData `json:"text,omitempty"`   // of the reply of an agent
	Event  string           `json:"event,omitempty"`  // a status, by its name in the agent's vocabulary
	Action *bus.ActionData  `json:"action,omitempty"` // of an agent, as it was recorded
	// Agent was asked by a call, and this is of it; Over: its last.
	Agent string `json:"agent,omitempty"`
	Ask   string `json:"ask,omitempty"`
	Over  bool   `json:"over,omitempty"`
}

// runReply says how a task ended. Plan is what its own step.finish answered, and At the
// position of that. Without them the task sealed none, or had no answer.
type runReply struct {
	Status string             `json:"status"`
	Reason string             `json:"reason,omitempty"`
	Plan   *catalog.PlanView  `json:"plan,omitempty"`
	At     int64              `json:"at,omitempty"`
	Next   []catalog.NextNode `json:"next,omitempty"`  // of a run
	Reply  string             `json:"reply,omitempty"` // of an agent, done; or of held
	Held   *bus.Approval      `json:"held,omitempty"`
	Usage  []catalog.Usage    `json:"usage,omitempty"` // that no order of the task has

	Components string  `json:"components,omitempty"` // of the reply, as step.finish has them
	TimedOut   bool    `json:"timed_out,omitempty"`
	Partial    bool    `json:"partial,omitempty"` // data was not available to it
	Routing    routing `json:"routing,omitzero"`

	Refused *OrderError `json:"-"` // what waits, for who asked in this process
}
