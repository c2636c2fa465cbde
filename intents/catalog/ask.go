package catalog

import "aob.dev/writ/intents"

var askRows = []Row{
	{Type: intents.TypeAgentAsk, Title: "Ask another agent", Capability: RunAgent, Signers: []intents.Role{intents.RoleTask}, Executor: ExecutorRouter, Effect: Idempotent},
}

// AgentAsk are the arguments of agent.ask: a task of another agent, for one call of the
// task that asks. PoP is the new key's signature over the other arguments.
type AgentAsk struct {
	Agent    string      `json:"agent"`
	Input    string      `json:"input"` // at most 16 KiB
	Context  AskContext  `json:"context"`
	PlanID   string      `json:"plan_id"`
	Epoch    int         `json:"epoch"`
	Parent   string      `json:"parent"` // the task that asks
	TaskID   string      `json:"task_id"`
	JWK      intents.JWK `json:"jwk"`
	PoP      string      `json:"pop,omitempty"`
	Deadline string      `json:"deadline"` // RFC 3339
}

// AskContext is what an asked agent inherits.
type AskContext struct {
	EpisodeID    string `json:"episode_id"` // the session, by default
	Locale       string `json:"locale,omitempty"`
	Location     string `json:"location,omitempty"`
	PriorContext string `json:"prior_context,omitempty"` // summary of the agent's previous turn; at most 2 KiB
}

// AgentAskResult is the result of agent.ask. If an intent repeats another, the task is
// the first one's.
type AgentAskResult struct {
	TaskID string   `json:"task_id"`
	Skills []string `json:"skills"` // that the asked agent may call
}

// Statuses of an ask in CallSummary, beside open and those of step.finish.
const (
	AskInterrupted = "interrupted" // ended before it could answer: it is asked again under the same call
	AskUnavailable = "unavailable"
)
