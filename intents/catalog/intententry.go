package catalog

// IntentEntry is one intent in the search index (agent_intents).
type IntentEntry struct {
	IntentID  string `json:"intent_id"`
	Position  int64  `json:"position"`
	TenantID  string `json:"tenant_id"`
	UserID    string `json:"user_id"`
	Type      string `json:"type"`
	Code      string `json:"code"`
	Verdict   string `json:"verdict"`
	KID       string `json:"kid"`
	Role      string `json:"role"`
	PlanID    string `json:"plan_id,omitempty"`
	SessionID string `json:"session_id,omitempty"`
	At        string `json:"at"`
	Skill     string `json:"skill,omitempty"`          // that a skill.call names
	Held      string `json:"held_intent_id,omitempty"` // that a hitl.approve decides about
}
