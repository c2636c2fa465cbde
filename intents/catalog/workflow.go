package catalog

import (
	"encoding/json"
	"time"

	"aob.dev/writ/intents"
)

// Limits of runs, which are plans of nodes.
const (
	MaxNodes     = 200
	MaxLiveNodes = 8 // nodes of a run that run at once
)

// The capabilities that runs need.
const (
	StartRuns     = "runs:start"      // without the workflow's name
	ReplayRuns    = "runs:replay"     // one's own
	ReplayAnyRuns = "runs:replay:any" // other users', too
)

var workflowRows = []Row{
	{Type: "workflow.start", Title: "Start a run of a workflow", Capability: StartRuns, Signers: []intents.Role{intents.RoleManager, intents.RoleGateway, intents.RoleOperator}, Executor: ExecutorRouter, Effect: Idempotent},
	{Type: "node.skip", Title: "Skip a node of a run", Capability: "plans:run", Signers: []intents.Role{intents.RoleWorkflow}, Executor: ExecutorRouter, Effect: Idempotent},
	{Type: "graph.patch", Title: "Add to the graph of a run", Capability: "runs:patch", Signers: []intents.Role{intents.RolePlanner, intents.RoleGateway, intents.RoleOperator}, Executor: ExecutorRouter, Effect: Idempotent},
	{Type: "run.replay", Title: "Repeat a run from a node on", Capability: ReplayRuns, Signers: []intents.Role{intents.RoleManager, intents.RoleGateway, intents.RoleOperator}, Executor: ExecutorRouter, Effect: Idempotent},
}

// WorkflowStart are the arguments of workflow.start.
type WorkflowStart struct {
	WorkflowID string          `json:"workflow_id"`
	Inputs     json.RawMessage `json:"inputs"` // object
	Priority   string          `json:"priority,omitempty"`
	// RunID is the plan_id of the run; empty: derived from the intent.
	RunID string `json:"run_id,omitempty"`
}

// NodeSkip are the arguments of node.skip.
type NodeSkip struct {
	PlanID string `json:"plan_id"`
	Epoch  int    `json:"epoch"`
	Step   int    `json:"step"`
}

// GraphPatch are the arguments of graph.patch. CURRENT_NODE stands for the node of the
// context, else for the running one.
type GraphPatch struct {
	RunID string          `json:"run_id"`
	Patch json.RawMessage `json:"patch"` // workflows.Patch
}

// RunReplay are the arguments of run.replay.
type RunReplay struct {
	RunID         string `json:"run_id"`
	FromNode      string `json:"from_node"`
	Mode          string `json:"mode"` // freeze, shadow
	RepeatEffects bool   `json:"repeat_effects,omitempty"`
}

// The modes of a replay.
const (
	ReplayFreeze = "freeze"
	ReplayShadow = "shadow"
)

// RunView is what a plan has that is the run of a workflow.
type RunView struct {
	RunID      string `json:"run_id"` // the plan_id
	WorkflowID string `json:"workflow_id"`
	Version    string `json:"version,omitempty"`
	Digest     string `json:"digest,omitempty"` // of the definition
	Priority   string `json:"priority,omitempty"`
	MaxDays    int    `json:"max_days,omitempty"` // that its standing grants are good for

	Edges []RunEdge `json:"edges,omitempty"` // of its graph now; answers to transitions leave them out

	ReplayOf      string `json:"of,omitempty"` // the run that it repeats; empty: it is no replay
	FromNode      string `json:"from_node,omitempty"`
	Mode          string `json:"mode,omitempty"`
	RepeatEffects bool   `json:"repeat_effects,omitempty"`
}

// RunEdge is an edge of a run, and what was decided of it.
type RunEdge struct {
	From      string `json:"from"`
	To        string `json:"to"`
	Condition string `json:"condition,omitempty"`
	Holds     *bool  `json:"holds,omitempty"` // nil: To has not begun
}

// StepSkipped is the status of a node that no edge leads to.
const StepSkipped StepStatus = "skipped"

// What the driver of a run has to do about a node.
const (
	NextRun   = "run"   // a step may open its task, from RetryAt on
	NextSkip  = "skip"  // a node.skip may skip it
	NextStuck = "stuck" // it failed, or reads missing data: so the run fails
)

// NextNode is a node that a driver can do something about.
type NextNode struct {
	Step    int        `json:"step"`
	Next    string     `json:"next"`
	RetryAt *time.Time `json:"retry_at,omitempty"`
	Reason  string     `json:"reason,omitempty"` // of stuck

	TimeoutSec int `json:"timeout_sec,omitempty"` // for how long its task may live; 0: as any
}

// NodeIntent is what the task of a node signs: exactly these arguments, and no other intent.
// Of an agent's node the type is NodeAgent: its task runs the agent on the arguments.
type NodeIntent struct {
	Type       string          `json:"type"`
	Args       json.RawMessage `json:"args"`
	Occurrence int             `json:"occurrence,omitempty"` // of its context
}

// KeptNode is what a node of a replay retains of the run: its task ends as it did.
type KeptNode struct {
	Replayed int64  `json:"replayed,omitempty"` // position of the intent, or of an agent's end; 0: nothing is recorded, or it was erased
	Intent   string `json:"intent,omitempty"`   // that done names
	Status   string `json:"status"`             // done, failed
}

// NodeAgent is the type of what an agent's node does.
const NodeAgent = "agent"
