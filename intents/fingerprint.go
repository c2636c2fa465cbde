package intents

import "encoding/json"

// TypeAgentAsk is the type of the intents by which an agent's task asks another agent.
const TypeAgentAsk = "agent.ask"

// Fingerprint identifies what is requested, independent of the signer: it has no roles, grant,
// task, call or signer, so a re-signed or resumed step is the same intent. It is an unsalted digest
// of the arguments, so no record has it.
func (e *Envelope) Fingerprint() string { return e.u.body.Fingerprint() }

// Fingerprint of the intent that has this body.
func (b Body) Fingerprint() string {
	var c Context
	if b.Context != nil {
		c = *b.Context
	}
	return Fingerprint(b.Intent, b.Actor.UserID, c)
}

// Fingerprint of an intent that is not signed yet: the digest of its RFC 8785 bytes.
func Fingerprint(in Spec, userID string, c Context) string {
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
	}{in.effectiveArgs(), c.Ask, c.NodeID, c.Occurrence, c.PlanID, c.Revision, c.RunID, c.SessionID, c.Step, c.TurnID, in.Type, userID})
	if err != nil {
		return "" // args that are not JSON are refused before anything asks
	}
	return Digest(canonical)
}

// effectiveArgs are the arguments that identify the request. Those of agent.ask that name who answers
// and the deadline differ each time that it is sent.
func (in Spec) effectiveArgs() json.RawMessage {
	var args map[string]json.RawMessage
	if in.Type != TypeAgentAsk || json.Unmarshal(in.Args, &args) != nil {
		return in.Args
	}
	for _, name := range []string{"deadline", "jwk", "pop", "task_id"} {
		delete(args, name)
	}
	raw, _ := MarshalPlain(args) // members of a document that was read
	return raw
}
