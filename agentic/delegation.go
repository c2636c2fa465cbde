package agentic

import (
	"encoding/json"
	"slices"
	"time"

	"aob.dev/writ/bus"
	"aob.dev/writ/intents/catalog"
)

// Delegations travel between the roles (writ.agent.<role>). They carry text,
// results, public keys and the turn's grant; without a role's key they carry no
// authority.

// placeRequest asks for a planner. The process must be known before it begins: fresh grants go to
// that process alone.
type placeRequest struct{}

// placeReply names the process.
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
	Agents    bool   `json:"agents,omitempty"` // its steps may name agents
	// Written is the revision as the model of a task wrote it; nil: the planner writes it.
	Written *written `json:"written,omitempty"`
	soFar
}

// soFar is the state of a plan before a revision, as the planner's model reads it.
type soFar struct {
	Completed []stepResult       `json:"completed,omitempty"`
	Waiting   []catalog.PlanStep `json:"waiting,omitempty"` // for people, for example: they stay in the plan
	Failed    *failedStep        `json:"failed,omitempty"`
	Beside    []failedStep       `json:"also_failed,omitempty"` // that ran beside it
	Remaining []catalog.PlanStep `json:"remaining,omitempty"`
}

// retained returns the steps that a revision leaves unchanged.
func (f soFar) retained() []catalog.PlanStep {
	out := slices.Clone(f.Waiting)
	for _, c := range f.Completed {
		out = append(out, c.Step)
	}
	return out
}

// room returns how many steps the revision may have.
func (f soFar) room() int { return catalog.MaxSteps - len(f.retained()) }

// stepResult is the result of a step as a model reads it. If it is too large to show, Result is the
// first rows, and Rows their total number, if known.
type stepResult struct {
	Step   catalog.PlanStep `json:"step"`
	Result json.RawMessage  `json:"result,omitempty"`
	Rows   int              `json:"rows,omitempty"`
	Notes  string           `json:"notes,omitempty"` // of the model that has the result
	Cut
}

// failedStep is the reason why a plan is revised.
type failedStep struct {
	Step          catalog.PlanStep     `json:"step"`
	Trigger       string               `json:"trigger"` // contract_violation, insufficient, failed, rejected, interrupted
	Reason        string               `json:"reason"`
	Suggestion    string               `json:"suggestion,omitempty"`
	IntentHistory []catalog.PastIntent `json:"facts,omitempty"` // intents with effects of all steps that are not done
}

// planReply is a planner's answer: the plan as its intent left it, and the answer of a plan
// without steps. Without a plan the user is asked, or the request is infeasible, and Reason explains it.
type planReply struct {
	Plan   *catalog.PlanView `json:"plan,omitempty"`
	Answer string            `json:"answer,omitempty"`
	Calls  []plannedCall     `json:"calls,omitempty"`
	Direct *direct           `json:"direct,omitempty"` // the conversation that the task of its step takes over
	Usage  []catalog.Usage   `json:"usage,omitempty"`  // not reported in an intent of the planner
	Reason string            `json:"reason,omitempty"`
	Ask    string            `json:"ask,omitempty"`
	Error  string            `json:"error,omitempty"` // the planner itself failed
}

// taskRequest is the first delegation to a task: make a key for this step.
type taskRequest struct {
	Step catalog.Step `json:"step"` // without jwk and pop
}

// taskReply has the key, its proof of possession, and the process in which the task waits.
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
	Agent    string           `json:"agent,omitempty"` // the agent at work; empty: a planner's step
	Epoch    int              `json:"epoch"`
	Route    *catalog.Route   `json:"route,omitempty"` // how the request was routed to the agent; nil: it was named
	Ask      string           `json:"ask,omitempty"`   // path of the call that asked the agent; empty: the step's own task
	Deadline string           `json:"deadline"`
	Bounded  bool             `json:"bounded,omitempty"` // no other task continues the step after the deadline
	Tokens   int              `json:"tokens,omitempty"`  // used by earlier tasks of the step
	// Calls of earlier tasks of the step, and Effects of other steps that are not done.
	Calls   []catalog.CallSummary `json:"calls,omitempty"`
	Effects []catalog.PastIntent  `json:"effects,omitempty"`
	// Intent is signed by the task of a node of a run; nil: the step is no node.
	Intent *catalog.NodeIntent `json:"intent,omitempty"`
	DryRun bool                `json:"dry_run,omitempty"` // of a shadow run: the intent is decided, and not dispatched
	Kept   *catalog.KeptNode   `json:"kept,omitempty"`    // of a replay: the task ends as the node did, and signs nothing else

	Begin []plannedCall `json:"begin,omitempty"` // the first calls, as they were planned
	Only  bool          `json:"only,omitempty"`  // the plan has no other step
	// Direct is the planner's conversation, which the task takes over; nil: it begins its own.
	Direct *direct `json:"direct,omitempty"`

	say        func(progress)          // to the requester; nil: nobody listens
	definition *catalog.AgentGetResult // the agent, if the requester knows it
	busy       *time.Duration          // for the requester: how long the model and the calls took
}

// stepInput is the result of an earlier step, by its memory key.
type stepInput struct {
	Step int    `json:"step"`
	Key  string `json:"key"`
}

// Results of a task, as reported in its reply.
const (
	taskDone            = "done"
	taskInsufficient    = "insufficient"
	taskFailed          = "failed"
	taskViolation       = "contract_violation"
	taskPendingApproval = "held"
	taskContinues       = "continues"  // a call of it takes longer than its time: the next task waits for it
	taskUnanswered      = "unanswered" // an intent of it has no answer: the step must continue from the record
)

// progress is what a task reports while it works, for display.
type progress struct {
	Skill  string           `json:"skill,omitempty"`  // being called
	Text   *bus.ContentData `json:"text,omitempty"`   // of the reply of an agent
	Event  string           `json:"event,omitempty"`  // a status, by its name in the agent's vocabulary
	Action *bus.ActionData  `json:"action,omitempty"` // of an agent, as it was recorded
	// Agent was asked by a call and is the source of this; Ended: its last progress.
	Agent string `json:"agent,omitempty"`
	Ask   string `json:"ask,omitempty"`
	Ended bool   `json:"over,omitempty"`
	// Request is the request being sent to a model, where the operator has requests shown.
	Request json.RawMessage `json:"request,omitempty"`
}

// runReply reports how a task ended. Plan is the answer to its own step.finish, and At the
// position of that. Without them the task signed none, or had no answer.
type runReply struct {
	Status   string             `json:"status"`
	Reason   string             `json:"reason,omitempty"`
	Plan     *catalog.PlanView  `json:"plan,omitempty"`
	At       int64              `json:"at,omitempty"`
	Next     []catalog.NextNode `json:"next,omitempty"`  // of a run
	Reply    string             `json:"reply,omitempty"` // of an agent: when done, or its text when it waits for approval
	Approval *bus.Approval      `json:"held,omitempty"`
	Usage    []catalog.Usage    `json:"usage,omitempty"` // not reported in an intent of the task

	Components string    `json:"components,omitempty"` // of the reply, as step.finish has them
	TimedOut   bool      `json:"timed_out,omitempty"`
	Partial    bool      `json:"partial,omitempty"` // some data was not available to it
	Routing    askReport `json:"routing,omitzero"`

	Answer  string   `json:"answer,omitempty"`  // to the user, which is also the result of the step
	Written *written `json:"written,omitempty"` // the revision that the plan needs

	Refused *IntentError `json:"-"` // the waiting intent, for a requester in this process
}
