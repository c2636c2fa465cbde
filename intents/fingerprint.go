package intents

import (
	"encoding/json"
	"strconv"
	"sync"
)

// Fingerprint says what is asked, whoever signs: no roles, grant,
// task or signer, so a re-signed or resumed step is the same order.
func (e *Envelope) Fingerprint() string {
	return Fingerprint(e.u.body.Intent, e.principal.UserID, e.Context())
}

// Fingerprint of an order that is not sealed yet.
func Fingerprint(in Intent, userID string, c Context) string {
	buf := fingerprints.Get().(*[]byte) //nolint:forcetypeassert // nothing else is put there
	defer fingerprints.Put(buf)
	w := fingerprint{json: (*buf)[:0], plain: true}
	w.args(in.Args)
	w.text("node_id", c.NodeID)
	w.number("occurrence", c.Occurrence)
	w.text("plan_id", c.PlanID)
	w.number("revision", c.Revision)
	w.text("run_id", c.RunID)
	w.text("session_id", c.SessionID)
	w.number("step", c.Step)
	w.text("turn_id", c.TurnID)
	w.always("type", in.Type)
	w.always("user", userID)
	if !w.plain {
		return fingerprintSlowly(in, userID, c)
	}
	*buf = append(w.json, '}') // kept as it has grown, for the next
	return Digest(*buf)
}

// fingerprints are buffers that one is made in: up to MaxSize, of orders in flight.
var fingerprints = sync.Pool{New: func() any { b := make([]byte, 0, 2<<10); return &b }}

// fingerprint writes the canonical JSON of what fingerprintSlowly marshals,
// members in order, as long as nothing in it needs an escape.
type fingerprint struct {
	json  []byte
	plain bool
}

// args come first, as the second level of the document.
func (w *fingerprint) args(args json.RawMessage) {
	s := scanner{b: args}
	_, ok := s.value(2)
	w.plain = ok && s.i == len(args)
	w.json = append(append(w.json, `{"args":`...), args...)
}

func (w *fingerprint) always(name, s string) {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c > '~' || c == '"' || c == '\\' {
			w.plain = false
			return
		}
	}
	w.json = append(append(append(w.json, `,"`...), name...), `":"`...)
	w.json = append(append(w.json, s...), '"')
}

func (w *fingerprint) text(name, s string) {
	if s != "" {
		w.always(name, s)
	}
}

func (w *fingerprint) number(name string, n int) {
	if n == 0 {
		return
	}
	if n < 0 || n > 1_000_000 {
		w.plain = false
		return
	}
	w.json = append(append(append(w.json, `,"`...), name...), `":`...)
	w.json = strconv.AppendInt(w.json, int64(n), 10)
}

// fingerprintSlowly is what Fingerprint means: the RFC 8785 bytes, digested.
func fingerprintSlowly(in Intent, userID string, c Context) string {
	canonical, err := marshalCanonical(struct {
		Type       string          `json:"type"`
		Args       json.RawMessage `json:"args"`
		User       string          `json:"user"`
		SessionID  string          `json:"session_id,omitempty"`
		TurnID     string          `json:"turn_id,omitempty"`
		PlanID     string          `json:"plan_id,omitempty"`
		Revision   int             `json:"revision,omitempty"`
		Step       int             `json:"step,omitempty"`
		RunID      string          `json:"run_id,omitempty"`
		NodeID     string          `json:"node_id,omitempty"`
		Occurrence int             `json:"occurrence,omitempty"`
	}{in.Type, in.Args, userID, c.SessionID, c.TurnID, c.PlanID, c.Revision, c.Step, c.RunID, c.NodeID, c.Occurrence})
	if err != nil {
		return "" // args that are not JSON are refused before anything asks
	}
	return Digest(canonical)
}
