package intents

import "encoding/json"

// Facts are what a decision saw beyond its order. They are the record's part
// "facts": together with the order they reproduce the policy's input, so a decision
// can be made again from its record alone. What does not apply to an order is absent.
type Facts struct {
	Signer    FactSigner `json:"signer"`
	Roles     []string   `json:"roles"` // of the actor, from grant or directory; empty: none
	Task      *FactTask  `json:"task,omitempty"`
	Plan      *FactPlan  `json:"plan,omitempty"`
	Skill     *FactSkill `json:"skill,omitempty"`
	Approvals []Approval `json:"approvals"`
	Now       string     `json:"now"` // RFC 3339 UTC with milliseconds, see FormatTime

	// Scopes of a pushed registry (agents.Scopes); no policy sees them.
	Scopes json.RawMessage `json:"scopes,omitempty"`

	// Next time of the schedule that an order puts, or that a plan is opened for; empty: there
	// is none. The router computes it, since it depends on the time zones of now; no policy
	// sees it.
	Next string `json:"next,omitempty"`
	// Budget is what was used by then, where a task is to begin and its tenant has
	// budgets; no policy sees it.
	Budget *FactBudget `json:"budget,omitempty"`

	// Patch of a run's graph.
	Patch *FactPatch `json:"patch,omitempty"`

	// Breaker is what the breaker of the skill server makes of an order that executors carry out;
	// no policy sees it.
	Breaker BreakerMark `json:"breaker,omitempty"`

	// Edges that lead to the node of a run that an order begins or skips; no policy sees them.
	Edges []FactEdge `json:"edges,omitempty"`

	// Inputs that an order names, as they were when it was decided: policies see them in the
	// arguments. Those of an order that was held are kept as they were then.
	Inputs []HeldInput `json:"inputs,omitempty"`
	// Data are the contents of inputs, by their pointer, as far as they are small and at hand. They
	// stand in the records of what made them, and in blobs.
	Data map[string][]byte `json:"-"`
}

// FactEdge is what a decision made of an edge of a run: whether it leads to its node.
type FactEdge struct {
	From  string `json:"from"` // a node
	Holds bool   `json:"holds"`
	Saw   string `json:"saw,omitempty"` // the digest of the values that its condition was judged by
}

// FactPatch is what a patch of a run's graph comes to. Policies see nodes and rewired.
type FactPatch struct {
	Current string     `json:"current,omitempty"` // the node that CURRENT_NODE stands for; empty: it is not there
	Nodes   []FactNode `json:"nodes"`             // that it adds
	Rewired []string   `json:"rewired"`           // nodes of before whose incoming edges change, sorted
}

// FactNode is a node that a patch adds.
type FactNode struct {
	ID     string `json:"id"`
	Type   string `json:"type"`
	Fn     string `json:"fn,omitempty"` // a skill's full id, or an agent's name
	Effect string `json:"effect"`       // of its order
}

// FactBudget is how many tokens were used before the decision: on its day (UTC), of all users of the
// tenant and of the order's; and by the plan.
type FactBudget struct {
	Day  int `json:"day"`
	User int `json:"user"`
	Turn int `json:"turn"`
}

// HeldInput is what an input that an order names stood for when it was decided: exactly these
// bytes go to its executor.
type HeldInput struct {
	Pointer string `json:"pointer"`       // where the data belongs in the arguments
	Ref     string `json:"ref,omitempty"` // cas://sha256:<hex>, of the order's tenant; of one that was not held also a file, or none
	SHA256  string `json:"sha256"`        // empty: it was not there yet
	Size    int64  `json:"size_bytes"`
	Inline  bool   `json:"inline,omitempty"` // the executor gets the value, not the reference
}

// FactSigner is the key that sealed the order.
type FactSigner struct {
	KID  string `json:"kid"`
	Role string `json:"role"`
}

// FactTask is the live task of a task key's order.
type FactTask struct {
	TaskID   string   `json:"task_id"`
	PlanID   string   `json:"plan_id"`
	Revision int      `json:"revision"`
	Step     int      `json:"step"`
	Skills   []string `json:"skills"`
	Agent    string   `json:"agent,omitempty"` // that the task runs; empty: the executor of a planner's step
	Deadline string   `json:"deadline"`        // RFC 3339
}

// FactPlan is the plan that the order belongs to, as it was when the order was decided.
type FactPlan struct {
	PlanID      string `json:"plan_id"`
	Status      string `json:"status"`
	Epoch       int    `json:"epoch"`
	Revision    int    `json:"revision"`
	ReplanCount int    `json:"replan_count"`
	Steps       int    `json:"steps"` // how many it has

	ByAgent bool `json:"by_agent,omitempty"` // an agent has put the reminder that it carries out
}

// FactSkill is the approved pin of the skill that the order names; of an unpinned
// skill there is none, and policy sees no member "skill".
type FactSkill struct {
	Name   string `json:"name"`
	Digest string `json:"digest"`
	Effect string `json:"effect"`
	Kind   string `json:"kind,omitempty"` // KindAgent: a remote agent

	Destructive string `json:"destructive,omitempty"` // Yes or No, as approved; empty: see Destroys
}

// Whether a call of a skill may destroy something, as somebody who approved it said.
const (
	Yes = "yes"
	No  = "no"
)

// Destroys says whether a call of the skill may destroy something: as it was approved, else
// if it does more than read. That it may be repeated does not make it harmless.
func (s FactSkill) Destroys() bool {
	return s.Destructive == Yes || s.Destructive == "" && s.Effect != "pure"
}
