package intents

import "encoding/json"

// Fingerprint says what is asked, whoever signs: no roles, grant,
// task, call or signer, so a re-signed or resumed step is the same order.
func (e *Envelope) Fingerprint() string {
	return Fingerprint(e.u.body.Intent, e.principal.UserID, e.Context())
}

// Fingerprint of an order that is not sealed yet: the digest of its RFC 8785 bytes.
func Fingerprint(in Intent, userID string, c Context) string {
	canonical, err := marshalCanonical(struct { // members in the order of RFC 8785
		Args       json.RawMessage `json:"args"`
		Ask        string          `json:"ask,omitempty"`
		NodeID     string          `json:"node_id,omitempty"`
		Occurrence int             `json:"occurrence,omitempty"`
		PlanID     string          `json:"plan_id,omitempty"`
		Revision   int             `json:"revision,omitempty"`
		RunID      string          `json:"run_id,omitempty"`
		SessionID  string          `json:"session_id,omitempty"`
		Step       int             `json:"step,omitempty"`
		TurnID     string          `json:"turn_id,omitempty"`
		Type       string          `json:"type"`
		User       string          `json:"user"`
	}{in.Args, c.Ask, c.NodeID, c.Occurrence, c.PlanID, c.Revision, c.RunID, c.SessionID, c.Step, c.TurnID, in.Type, userID})
	if err != nil {
		return "" // args that are not JSON are refused before anything asks
	}
	return Digest(canonical)
}
