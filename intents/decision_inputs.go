package intents

import "encoding/json"

// DecisionInputs are the inputs of a decision beside its intent. They are the record's part
// "facts": together with the intent they reproduce the policy's input, so a decision
// can be repeated from its record alone. Members that do not apply to an intent are absent.
type DecisionInputs struct {
	Signer    SignerInput `json:"signer"`
	Roles     []string    `json:"roles"` // of the actor, from grant or directory; empty: none
	Task      *TaskInput  `json:"task,omitempty"`
	Plan      *PlanInput  `json:"plan,omitempty"`
	Skill     *SkillInput `json:"skill,omitempty"`
	Effect    string      `json:"effect,omitempty"` // of a vendor's type, by the router's catalog
	Approvals []Approval  `json:"approvals"`
	// Standing is the standing approval in Approvals: the intent_id of the call that it was given for.
	Standing string `json:"standing,omitempty"`
	Now      string `json:"now"` // RFC 3339 UTC with milliseconds, see FormatTime

	// Scopes of a pushed registry (agents.Scopes); no policy sees them.
	Scopes json.RawMessage `json:"scopes,omitempty"`

	// Next time of the schedule that an intent puts, or for which a plan is opened; empty: there
	// is none. The router computes it, since it depends on the time zones of now; no policy
	// sees it.
	Next string `json:"next,omitempty"`
	// Budget is what was used by then, where a task is to begin and its tenant has
	// budgets; no policy sees it.
	Budget *BudgetInput `json:"budget,omitempty"`

	// Patch of a run's graph.
	Patch *PatchInput `json:"patch,omitempty"`

	// OpenAgents are the agents whose breaker request routing found open, sorted. The router alone
	// knows them; no policy sees them.
	OpenAgents []string `json:"open_agents,omitempty"`

	// Edges that lead to the node of a run that an intent begins or skips; no policy sees them.
	Edges []EdgeInput `json:"edges,omitempty"`

	// Inputs that an intent names, as they were when it was decided: policies see them in the
	// arguments. Those of a held intent stay as they were then.
	Inputs []HeldInput `json:"inputs,omitempty"`
	// Data are the contents of inputs, by their pointer, where they are small and available. They
	// are in the records that produced them, and in blobs.
	Data map[string][]byte `json:"-"`
}

// EdgeInput is what a decision made of an edge of a run: whether it leads to its node.
type EdgeInput struct {
	From  string `json:"from"` // a node
	Holds bool   `json:"holds"`
	Saw   string `json:"saw,omitempty"` // the digest of the values that its condition was judged by
}

// PatchInput is what a patch of a run's graph comes to. Policies see nodes and rewired.
type PatchInput struct {
	Current string      `json:"current,omitempty"` // the node that CURRENT_NODE names; empty: it does not occur
	Nodes   []NodeInput `json:"nodes"`             // that it adds
	Rewired []string    `json:"rewired"`           // nodes of before whose incoming edges change, sorted
}

// NodeInput is a node that a patch adds.
type NodeInput struct {
	ID     string `json:"id"`
	Type   string `json:"type"`
	Fn     string `json:"fn,omitempty"` // a skill's full id, or an agent's name
	Effect string `json:"effect"`       // of its intent
}

// BudgetInput is how many tokens were used before the decision: on its day (UTC), by all users of the
// tenant and by the intent's user; and by the plan.
type BudgetInput struct {
	Day  int `json:"day"`
	User int `json:"user"`
	Turn int `json:"turn"`
}

// HeldInput is the value of an input that an intent names, when the intent was decided: exactly these
// bytes go to the executor.
type HeldInput struct {
	Pointer string `json:"pointer"`       // where the data belongs in the arguments
	Ref     string `json:"ref,omitempty"` // cas://sha256:<hex>, of the intent's tenant; of one that was not held also a file, or none
	SHA256  string `json:"sha256"`        // empty: it was not there yet
	Size    int64  `json:"size_bytes"`
	Inline  bool   `json:"inline,omitempty"` // the executor gets the value, not the reference
}

// SignerInput is the key that signed the intent.
type SignerInput struct {
	KID  string `json:"kid"`
	Role string `json:"role"`
}

// TaskInput is the live task of an intent signed with a task key.
type TaskInput struct {
	TaskID   string   `json:"task_id"`
	PlanID   string   `json:"plan_id"`
	Revision int      `json:"revision"`
	Step     int      `json:"step"`
	Skills   []string `json:"skills"`
	Agent    string   `json:"agent,omitempty"`   // that the task runs; empty: the executor of a planner's step
	Deadline string   `json:"deadline"`          // RFC 3339
	Sources  []Source `json:"sources,omitempty"` // that its plan, and what the intent names, brought in
}

// PlanInput is the plan that the intent belongs to, as it was when the intent was decided.
type PlanInput struct {
	PlanID      string `json:"plan_id"`
	Status      string `json:"status"`
	Epoch       int    `json:"epoch"`
	Revision    int    `json:"revision"`
	ReplanCount int    `json:"replan_count"`
	Steps       int    `json:"steps"` // how many it has

	ByAgent bool `json:"by_agent,omitempty"` // an agent has put the reminder that it carries out
}

// SkillInput is the approved pin of the skill that the intent names; an unpinned
// skill has none, and policy sees no member "skill".
type SkillInput struct {
	Name   string `json:"name"`
	Digest string `json:"digest"`
	Effect string `json:"effect"`
	Kind   string `json:"kind,omitempty"` // KindAgent: a remote agent

	Destructive string `json:"destructive,omitempty"` // Yes or No, as approved; empty: see Destroys

	Trusted bool `json:"trusted,omitempty"` // the operator trusts its server's words
	// OpenWorld says whether it reaches, and shows, what anybody may know: Yes or No; empty: not
	// known, so that its server may pass on what it gets, and show what is private.
	OpenWorld string `json:"open_world,omitempty"`
}

// Values of Destructive: whether a call of a skill may destroy something, as declared at its approval.
const (
	Yes = "yes"
	No  = "no"
)

// Destroys reports whether a call of the skill may destroy something: as it was approved, else
// if it does more than read. That it may be repeated does not make it harmless.
func (s SkillInput) Destroys() bool {
	return s.Destructive == Yes || s.Destructive == "" && s.Effect != "pure"
}

// ReadInputs reads the part "facts" of a record.
func ReadInputs(part []byte) (DecisionInputs, error) {
	return ReadPart(part, func(c *Cursor, in *DecisionInputs) {
		c.Members("signer", func() { c.Members("kid", &in.Signer.KID, "role", &in.Signer.Role) },
			"roles", &in.Roles, "task", func() {
				t := new(TaskInput)
				in.Task = t
				c.Members("task_id", &t.TaskID, "plan_id", &t.PlanID, "revision", &t.Revision, "step", &t.Step,
					"skills", &t.Skills, "agent", &t.Agent, "deadline", &t.Deadline)
			}, "plan", func() {
				p := new(PlanInput)
				in.Plan = p
				c.Members("plan_id", &p.PlanID, "status", &p.Status, "epoch", &p.Epoch, "revision", &p.Revision,
					"replan_count", &p.ReplanCount, "steps", &p.Steps, "by_agent", &p.ByAgent)
			}, "skill", func() {
				s := new(SkillInput)
				in.Skill = s
				c.Members("name", &s.Name, "digest", &s.Digest, "effect", &s.Effect, "kind", &s.Kind, "destructive", &s.Destructive)
			}, "approvals", c.Null, "now", &in.Now)
	})
}
