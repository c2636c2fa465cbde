package intents

import (
	"bytes"
	"encoding/json"
	"strings"

	"aob.dev/writ/internal/plainjson"
)

// ReadSealed reads the part "order" of a record.
func ReadSealed(part []byte) (s Sealed, err error) {
	if !quickSealed(part, &s) {
		s = Sealed{}
		err = json.Unmarshal(part, &s)
	}
	return s, err
}

func quickSealed(part []byte, s *Sealed) bool {
	c := plainjson.New(part)
	c.Object(func() {
		c.Text(`"header":`, &s.Header)
		if c.Has(`"payload":`) {
			s.Payload = string(c.Any(false))
		}
		c.Text(`"sig":`, &s.Sig)
	})
	return c.Whole()
}

// Body of a recorded order, which was held to the schema before it was recorded.
// To keep one of its strings, or the arguments, keeps nothing else alive.
func (s Sealed) Body() (Body, error) {
	b, ok := readPlainBody([]byte(s.Payload))
	if ok {
		return b.apart(), nil
	}
	b = Body{}
	return b, json.Unmarshal([]byte(s.Payload), &b)
}

// apart copies what is a part of one text.
func (b Body) apart() Body {
	a, c := &b.Actor, &b.Constraints
	texts := []*string{&b.Version, &b.TraceID, &b.Intent.Type, &a.UserID, &a.Tenant, &a.Grant, &c.IssuedAt, &c.Audience, &c.IdempotencyKey}
	if x := b.Context; x != nil {
		texts = append(texts, &x.SessionID, &x.TurnID, &x.PlanID, &x.TaskID, &x.RunID, &x.NodeID, &x.Cause)
		if x.Agent != nil {
			texts = append(texts, &x.Agent.Name, &x.Agent.Digest)
		}
		labels := make(map[string]string, len(x.Labels))
		for name, value := range x.Labels {
			labels[strings.Clone(name)] = strings.Clone(value)
		}
		if x.Labels != nil {
			x.Labels = labels
		}
	}
	for _, list := range [][]string{a.Roles, c.Capabilities} {
		for i := range list {
			texts = append(texts, &list[i])
		}
	}
	for _, text := range texts {
		*text = strings.Clone(*text)
	}
	b.Intent.Args = bytes.Clone(b.Intent.Args)
	return b
}

// ReadDecision reads the part "decision" of a record.
func ReadDecision(part []byte) (d Decision, err error) {
	if !quickDecision(part, &d) {
		d = Decision{}
		err = json.Unmarshal(part, &d)
	}
	return d, err
}

// quickDecision reads decisions in which nothing but texts and numbers is.
func quickDecision(part []byte, d *Decision) bool {
	c := plainjson.New(part)
	c.Object(func() {
		c.Text(`"verdict":`, (*string)(&d.Verdict))
		c.Text(`"code":`, (*string)(&d.Code))
		c.Text(`"pointer":`, &d.Pointer)
		if c.Has(`"reason":`) {
			d.Reason = string(c.Any(false))
		}
		d.PolicyIDs = c.List(`"policy_ids":`)
		d.Retryable = c.Flag(`"retryable":`)
		if c.Has(`"hint":`) {
			d.Hint = string(c.Any(false))
		}
		d.Approvers = c.List(`"approvers":`)
		c.Text(`"intent_id":`, &d.IntentID)
		c.Text(`"fingerprint":`, &d.Fingerprint)
		c.Text(`"policy_digest":`, &d.PolicyDigest)
		c.Text(`"catalog_digest":`, &d.Catalog)
		d.Directory = c.Number(`"directory":`)
		c.Text(`"effect":`, &d.Effect)
		c.Text(`"executor":`, &d.Executor)
		c.Text(`"key":`, &d.Key)
	})
	return c.Whole()
}
