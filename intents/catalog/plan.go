package catalog

import (
	"cmp"
	"encoding/json"
	"slices"
	"time"

	"aob.dev/writ/intents"
)

// Limits of plans.
const (
	MaxSteps   = 10
	MaxReplans = 3
)

var planRows = []Row{
	{Type: "plan.open", Title: "Open a plan for a user's request", Capability: "plans:write", Signers: []intents.Role{intents.RoleGateway}, Executor: ExecutorRouter, Effect: Idempotent},
	{Type: "plan.close", Title: "Close a plan with its answer or failure", Capability: "plans:write", Signers: []intents.Role{intents.RoleManager, intents.RoleWorkflow}, Executor: ExecutorRouter, Effect: Idempotent},
	{Type: "plan", Title: "Submit a plan or a revision of it", Capability: "plans:write", Signers: []intents.Role{intents.RolePlanner, intents.RoleManager}, Executor: ExecutorRouter, Effect: Idempotent},
	{Type: "usage.report", Title: "Report what models were used for a user, outside of all plans", Capability: "plans:write", Signers: []intents.Role{intents.RoleManager, intents.RolePlanner}, Executor: ExecutorRouter, Effect: Idempotent},
	{Type: "plan.claim", Title: "Drive a plan from now on", Capability: "plans:run", Signers: []intents.Role{intents.RoleManager, intents.RoleWorkflow}, Executor: ExecutorRouter, Effect: Idempotent},
	{Type: "step", Title: "Open a task for a step of the plan", Capability: "plans:run", Signers: []intents.Role{intents.RoleManager, intents.RoleWorkflow}, Executor: ExecutorRouter, Effect: Idempotent},
	{Type: "step.finish", Title: "End a task", Capability: "plans:run", Signers: []intents.Role{intents.RoleTask, intents.RoleManager, intents.RoleWorkflow}, Executor: ExecutorRouter, Effect: Idempotent},
	{Type: "cancel", Title: "Cancel a plan", Capability: "plans:run", Signers: []intents.Role{intents.RoleGateway, intents.RoleManager, intents.RoleOperator}, Executor: ExecutorRouter, Effect: Idempotent},
	{Type: "plan.get", Title: "Read a plan", Capability: "plans:read", Signers: []intents.Role{intents.RoleManager, intents.RoleWorkflow}, Executor: "plans", Effect: Pure},
	{Type: "transcript.get", Title: "Read what earlier calls of the step asked for and what came of them", Capability: "plans:read", Signers: []intents.Role{intents.RoleTask}, Executor: "plans", Effect: Pure},
}

// PlanOpen are the arguments of plan.open.
type PlanOpen struct {
	PlanID string `json:"plan_id"`
	Task   string `json:"task"` // the user's request, at most 16 KiB
	// Agent carries the request out, in the revision of now; empty: a planner does.
	Agent string `json:"agent,omitempty"`

	Request *Request     `json:"request,omitempty"` // which of the user it is; nil: one that is not sent again
	Turn    *TurnContext `json:"turn,omitempty"`
	// Transient are the digests of the texts beside the envelope, by name.
	Transient map[string]string `json:"transient,omitempty"`

	Schedule *Firing `json:"schedule,omitempty"` // nil: a user asks now

	Routing *Routing `json:"routing,omitempty"` // that chooses the agent; nil: a planner, or Agent, does the work
	// APIKey is the id of the key that the client came with whose plan it is.
	APIKey string `json:"api_key,omitempty"`
}

// PlanClose are the arguments of plan.close. Response belongs to complete, and as the question to
// needs_input; Failure to failed.
type PlanClose struct {
	PlanID   string   `json:"plan_id"`
	Epoch    int      `json:"epoch"`
	Status   string   `json:"status"` // complete, failed, needs_input
	Response string   `json:"response,omitempty"`
	Failure  *Failure `json:"failure,omitempty"`
	Usage    []Usage  `json:"usage,omitempty"` // that no earlier intent of the plan reported
}

// Failure is the structured failure of a plan.
type Failure struct {
	Reason         string       `json:"reason"` // "max replan attempts reached", "infeasible: …", …
	CompletedSteps []int        `json:"completed_steps"`
	LastFailure    *LastFailure `json:"last_failure,omitempty"`
}

// LastFailure names the step that failed last.
type LastFailure struct {
	Step   int    `json:"step"`
	Reason string `json:"reason"`
}

// ReturnSpec is the contract of a step's result.
type ReturnSpec struct {
	Shape  string `json:"shape"` // shorthand, see schemas.CompileShape
	Reason string `json:"reason"`
}

// PlanStep is one step of a submitted plan.
type PlanStep struct {
	Step          int        `json:"step"`
	ID            string     `json:"id,omitempty"` // what its planner calls it
	Task          string     `json:"task"`
	Skills        []string   `json:"skills"`
	Agent         string     `json:"agent,omitempty"`           // who carries it out with tools of its own, in place of skills
	InputFromStep int        `json:"input_from_step,omitempty"` // the same as Inputs of one step
	Inputs        []int      `json:"inputs,omitempty"`          // steps whose results it works on
	After         []int      `json:"after,omitempty"`           // steps that it waits for; none: for the one before it
	Parallel      bool       `json:"parallel,omitempty"`        // without After: it waits for its inputs alone
	ReturnSpec    ReturnSpec `json:"return_spec"`
}

// Plan are the arguments of plan: steps replace every step that is not retained
// (StepView.Retained) and every one that Drop names, whose held intents end with it; numbers
// run on from the last one of the revision before. Revision 1 may have no steps but an
// Answer: then nothing need be done, and the plan can only be closed with that text.
type Plan struct {
	PlanID   string     `json:"plan_id"`
	Epoch    int        `json:"epoch"`
	Revision int        `json:"revision"`
	Steps    []PlanStep `json:"steps"`
	Drop     []int      `json:"drop,omitempty"`
	Answer   string     `json:"answer,omitempty"`
	Usage    []Usage    `json:"usage,omitempty"`
	Route    *Route     `json:"route,omitempty"` // of a plan that was opened for routing
}

// Usage is what an agent used of one model. The agent's process reports and signs it.
type Usage struct {
	Agent        string `json:"agent"`
	Model        string `json:"model"` // driver:model
	Calls        int    `json:"calls"` // requests that were answered
	InputTokens  int    `json:"input_tokens"`
	CachedTokens int    `json:"cached_tokens,omitempty"` // of the input tokens
	OutputTokens int    `json:"output_tokens"`
	Estimated    bool   `json:"estimated,omitempty"` // tokens that a server did not report are in the sums
	LatencyMS    int64  `json:"latency_ms"`          // of all calls together
}

// UsageReport are the arguments of usage.report.
type UsageReport struct {
	Usage []Usage `json:"usage"`
}

// maxUsage bounds a sum: agents' own reports are not trusted without limit.
const (
	maxUsage = 1_000_000_000_000
	maxCalls = 1_000_000
)

// Tokens of a report, input and output together.
func Tokens(usage []Usage) (n int) {
	for _, u := range usage {
		n = AddTokens(n, AddTokens(u.InputTokens, u.OutputTokens))
	}
	return n
}

// AddTokens is a sum, bounded.
func AddTokens(a, b int) int { return min(a+b, maxUsage) }

// AddUsage adds to a sum, sorted by agents and models.
func AddUsage(sum []Usage, more ...Usage) []Usage {
	sum = slices.Clone(sum)
	for _, m := range more {
		at, there := slices.BinarySearchFunc(sum, m, func(a, b Usage) int {
			return cmp.Or(cmp.Compare(a.Agent, b.Agent), cmp.Compare(a.Model, b.Model))
		})
		if !there {
			sum = slices.Insert(sum, at, m)
			continue
		}
		s := &sum[at]
		s.Calls = min(s.Calls+m.Calls, maxCalls)
		s.InputTokens = AddTokens(s.InputTokens, m.InputTokens)
		s.CachedTokens = AddTokens(s.CachedTokens, m.CachedTokens)
		s.OutputTokens = AddTokens(s.OutputTokens, m.OutputTokens)
		s.Estimated = s.Estimated || m.Estimated
		s.LatencyMS = min(s.LatencyMS+m.LatencyMS, maxUsage)
	}
	return sum
}

// SumUsage is what a turn used in all; agent and model are those with the most output.
func SumUsage(usage []Usage) (sum Usage) {
	most := -1
	for _, u := range usage {
		sum.Calls = min(sum.Calls+u.Calls, maxCalls)
		sum.InputTokens = AddTokens(sum.InputTokens, u.InputTokens)
		sum.CachedTokens = AddTokens(sum.CachedTokens, u.CachedTokens)
		sum.OutputTokens = AddTokens(sum.OutputTokens, u.OutputTokens)
		sum.Estimated = sum.Estimated || u.Estimated
		sum.LatencyMS = min(sum.LatencyMS+u.LatencyMS, maxUsage)
		if u.OutputTokens > most {
			sum.Agent, sum.Model, most = u.Agent, u.Model, u.OutputTokens
		}
	}
	return sum
}

// PlanClaim are the arguments of plan.claim; Driver is random per dispatch.
type PlanClaim struct {
	PlanID string `json:"plan_id"`
	Epoch  int    `json:"epoch"` // current + 1
	Driver string `json:"driver"`
}

// Step are the arguments of step. PoP is the new key's signature over the other
// arguments (intents.SignPoP).
type Step struct {
	PlanID     string      `json:"plan_id"`
	PlanDigest string      `json:"plan_digest"`
	Step       int         `json:"step"`
	Epoch      int         `json:"epoch"`
	TaskID     string      `json:"task_id"`
	JWK        intents.JWK `json:"jwk"`
	PoP        string      `json:"pop,omitempty"`
	Deadline   string      `json:"deadline"` // RFC 3339
}

// StepFinish are the arguments of step.finish. Done names the memory key; of an agent's
// own plan or node it has the Reply, of another node of a run it names the Intent.
type StepFinish struct {
	TaskID     string  `json:"task_id"`
	Status     string  `json:"status"` // done, insufficient, failed, held; of a task that the signer asked: unavailable
	MemoryKey  string  `json:"memory_key,omitempty"`
	Intent     string  `json:"intent,omitempty"` // intent_id
	Reply      string  `json:"reply,omitempty"`  // of an agent, or of held: completed and pending work
	Reason     string  `json:"reason,omitempty"`
	Suggestion string  `json:"suggestion,omitempty"`
	Usage      []Usage `json:"usage,omitempty"`

	Completed json.RawMessage `json:"completed,omitempty"` // null, of insufficient: there is no result
	Cause     string          `json:"cause,omitempty"`     // of insufficient and failed

	Components string   `json:"components,omitempty"` // of the reply, as JSON: [{name, props}]
	Dropped    []string `json:"dropped,omitempty"`    // agents that exceeded the limit and were not asked
	// WorkflowComplete: the remote agent has done what the session is about, which is closed.
	WorkflowComplete bool `json:"workflow_complete,omitempty"`
}

// Causes of a step's end without a result.
const (
	SkillTimeout   = "skill_timeout"   // the last skill did not answer in time
	NeedsPlan      = "needs_plan"      // the look-up is over: a plan carries the request out
	NeedsApprovers = "needs_approvers" // a call was denied because nobody could approve it
)

// Cancel are the arguments of cancel.
type Cancel struct {
	PlanID string `json:"plan_id"`
	Reason string `json:"reason,omitempty"`
}

// PlanGet are the arguments of plan.get.
type PlanGet struct {
	PlanID string `json:"plan_id"`
}

// BeyondGrant reports whether an intent reads a plan that its standing grant does not cover.
func BeyondGrant(e *intents.Envelope) bool {
	g := e.Grant()
	return e.Type() == "plan.get" && g != nil && !g.Serves(intents.Context{PlanID: e.StringArg("plan_id")})
}

// PlanList selects plans, newest first.
type PlanList struct {
	Status string `json:"status,omitempty"`
	Limit  int    `json:"limit,omitempty"` // 1..100, default 20
	After  string `json:"after,omitempty"`
	// Runs: only those of workflows, of one where it is named.
	Runs       bool   `json:"runs,omitempty"`
	WorkflowID string `json:"workflow_id,omitempty"`
}

// PlanStatus is a closed set.
type PlanStatus string

// StepStatus is a closed set.
type StepStatus string

// The states of plans.
const (
	PlanPending    PlanStatus = "pending"
	PlanPlanning   PlanStatus = "planning"
	PlanExecuting  PlanStatus = "executing"
	PlanReplanning PlanStatus = "replanning"
	PlanComplete   PlanStatus = "complete"
	PlanFailed     PlanStatus = "failed"
	PlanNeedsInput PlanStatus = "needs_input" // it has ended with a question to its user
)

// EndedPlan are the states of plans that no transition can change any more.
var EndedPlan = []PlanStatus{PlanComplete, PlanFailed, PlanNeedsInput}

// Ended reports whether the plan has ended.
func (s PlanStatus) Ended() bool { return slices.Contains(EndedPlan, s) }

// The states of steps.
const (
	StepPending         StepStatus = "pending"
	StepRunning         StepStatus = "running"
	StepPendingApproval StepStatus = "held"
	StepDone            StepStatus = "done"
	StepInsufficient    StepStatus = "insufficient"
	StepFailed          StepStatus = "failed"
	StepInterrupted     StepStatus = "interrupted"
)

// PlanView is the state of a plan: the result of plan.get and of every transition of a plan,
// and the document of agent_plans. The answers to transitions leave out Task,
// Response and the Args of IntentHistory, which would be recorded each time; only
// plan.claim returns them.
type PlanView struct {
	PlanID        string       `json:"plan_id"`
	TenantID      string       `json:"tenant_id"`
	UserID        string       `json:"user_id"`
	SessionID     string       `json:"session_id,omitempty"`
	TurnID        string       `json:"turn_id,omitempty"`
	Status        PlanStatus   `json:"status"`
	Task          string       `json:"task,omitempty"`  // only plan.claim's answer has it
	Agent         string       `json:"agent,omitempty"` // whose plan it is; empty: a planner's
	Epoch         int          `json:"epoch"`
	Revision      int          `json:"revision"`
	PlanDigest    string       `json:"plan_digest,omitempty"`
	MaxSteps      int          `json:"max_steps"`
	ReplanCount   int          `json:"replan_count"`
	Steps         []StepView   `json:"steps"`
	History       []Replan     `json:"replan_history"`
	IntentHistory []PastIntent `json:"facts,omitempty"` // intents with effects of interrupted and held steps
	Usage         []Usage      `json:"usage,omitempty"`
	Response      string       `json:"response,omitempty"`
	Failure       *Failure     `json:"failure,omitempty"`
	// Components accompany an agent's answer: [{name, props}].
	Components  json.RawMessage `json:"components,omitempty"`
	CreatedAt   time.Time       `json:"created_at"`
	CompletedAt *time.Time      `json:"completed_at,omitempty"`

	WorkflowComplete bool `json:"workflow_complete,omitempty"` // its remote agent reports it: the session is closed with the plan

	Turn    *TurnContext    `json:"turn,omitempty"`    // plan.claim's answer alone has it
	Agents  bool            `json:"agents,omitempty"`  // there are some that its steps may name; likewise
	Routing *RoutingContext `json:"routing,omitempty"` // its request is to be routed; likewise

	ByAgent bool `json:"by_agent,omitempty"` // its Task is a reminder in an agent's words, not in its user's; likewise

	Route *Route `json:"route,omitempty"` // how routing chose the agent; its texts are left out as the Task is

	Run *RunView `json:"run,omitempty"` // the plan is the run of a workflow
}

// StepView is a step with what became of it.
type StepView struct {
	PlanStep
	Status        StepStatus `json:"status"`
	Revision      int        `json:"revision"`
	TaskID        string     `json:"task_id,omitempty"`
	MemoryKey     string     `json:"memory_key,omitempty"`
	Validated     bool       `json:"validated"`
	FailureReason string     `json:"failure_reason,omitempty"`
	Cause         string     `json:"cause,omitempty"` // of StepFinish
	Suggestion    string     `json:"suggestion,omitempty"`
	StartedAt     *time.Time `json:"started_at,omitempty"`
	FinishedAt    *time.Time `json:"finished_at,omitempty"`

	Type     string     `json:"type,omitempty"`     // of a node of a run
	Attempts int        `json:"attempts,omitempty"` // of a node, that have failed
	RetryAt  *time.Time `json:"retry_at,omitempty"` // when it may be tried again
	Replayed int64      `json:"replayed,omitempty"` // of a replay: the position of the record that it retains
}

// Replan is one entry of replan_history.
type Replan struct {
	Attempt    int       `json:"attempt"`
	Trigger    string    `json:"trigger"` // contract_violation, insufficient, failed, rejected, interrupted
	FailedStep int       `json:"failed_step"`
	Shape      string    `json:"shape,omitempty"` // of its return_spec
	Reason     string    `json:"reason"`
	RevisedAt  time.Time `json:"revised_at"`
}

// PastIntent is a committed intent of an interrupted or held step, given to the
// next driver.
type PastIntent struct {
	Step     int             `json:"step"`
	Revision int             `json:"revision"`
	IntentID string          `json:"intent_id"`
	Type     string          `json:"type"`
	Effect   Effect          `json:"effect"`
	Args     json.RawMessage `json:"args"`
	Status   string          `json:"status"` // open, held, done, failed, indeterminate
	Code     intents.Code    `json:"code,omitempty"`
}

// StepResult is the result of step: the task's scope, and the plan.
type StepResult struct {
	TaskID   string   `json:"task_id"`
	InputKey string   `json:"input_key,omitempty"` // memory key that the task may read
	Plan     PlanView `json:"plan"`
}

// PlanGetResult is the result of plan.get.
type PlanGetResult struct {
	Plan PlanView `json:"plan"`
}

// PlanTrace are the events of a plan, or of its session, in order.
type PlanTrace struct {
	PlanID string            `json:"plan_id"`
	Events []json.RawMessage `json:"events"`
}

// PlanListResult are plans, newest first.
type PlanListResult struct {
	Plans  []PlanView `json:"plans"`
	Cursor string     `json:"cursor,omitempty"`
}

// MaxClientCalls is how many calls of an MCP client one plan has.
const MaxClientCalls = 200
