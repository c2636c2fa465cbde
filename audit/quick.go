package audit

import (
	"bytes"

	"aob.dev/writ/intents"
	"aob.dev/writ/policies"
	"aob.dev/writ/storage"
)

// quickLine reads the lines that nearly all of a bundle are, in the one spelling
// that decodeLine accepts.
func quickLine(raw []byte) (line, bool) {
	c := cursor{b: raw}
	if c.lit(`{"record":`) {
		e := c.entry()
		c.must("}\n")
		return line{Record: e}, c.whole()
	}
	if c.lit(`{"leaf":`) {
		b := &Bare{}
		c.object(func() {
			if c.has(`"leaf":`) {
				b.Leaf = string(c.any(true))
			}
			b.Proof = c.proof()
		})
		c.must("}\n")
		return line{Leaf: b}, c.whole() && b.Proof != nil && b.Leaf != ""
	}
	return line{}, false
}

func (c *cursor) proof() []byte {
	if !c.has(`"proof":`) {
		return nil
	}
	return c.bytes()
}

func (c *cursor) entry() *Entry {
	e := &Entry{}
	c.object(func() {
		c.must(`"position":`)
		e.Position = c.integer()
		c.first = false
		if c.has(`"kind":`) {
			e.Kind = kind(c.plain())
		}
		c.text(`"at":`, &e.At)
		c.text(`"tag":`, &e.Tag)
		if !c.has(`"parts":`) {
			c.odd = true
			return
		}
		e.Parts = c.parts()
		if c.has(`"receipt":`) {
			e.Receipt = string(c.plain())
			c.odd = c.odd || e.Receipt == ""
		}
		e.Proof = c.proof()
		c.odd = c.odd || e.Kind == "" || e.At == "" || e.Tag == "" || len(e.Proof) == 0
	})
	return e
}

// kind makes no string for the kinds that there are.
func kind(b []byte) storage.Kind {
	for _, k := range []storage.Kind{storage.KindOutcome, storage.KindOrder, storage.KindControl, storage.KindRelease, storage.KindTakeover} {
		if string(b) == string(k) {
			return k
		}
	}
	return storage.Kind(b)
}

// parts in ascending order of their names, as encoding/json writes a map.
func (c *cursor) parts() map[string]Part {
	out := make(map[string]Part, 4)
	c.must("{")
	var last []byte
	for !c.odd && !c.lit("}") {
		if last != nil {
			c.must(",")
		}
		name := c.plain()
		c.must(":")
		if last != nil && bytes.Compare(last, name) >= 0 {
			c.odd = true
		}
		last = name
		var p Part
		c.object(func() {
			switch {
			case c.has(`"text":`):
				p.body = c.any(true)
				c.must(`,"salt":`)
				p.Salt = c.bytes()
				c.odd = c.odd || p.body == nil || len(p.Salt) == 0
			case c.has(`"digest":`):
				p.Digest = string(c.plain())
				c.odd = c.odd || p.Digest == ""
			default:
				c.odd = true
			}
		})
		out[string(name)] = p
	}
	c.first = false
	return out
}

// quickSealed reads the part "order".
func quickSealed(raw []byte, s *intents.Sealed) bool {
	c := cursor{b: raw}
	c.object(func() {
		c.text(`"header":`, &s.Header)
		if c.has(`"payload":`) {
			s.Payload = string(c.any(false))
		}
		c.text(`"sig":`, &s.Sig)
	})
	return c.whole()
}

// quickDecision reads the part "decision" where nothing but texts is in it.
func quickDecision(raw []byte, d *intents.Decision) bool {
	c := cursor{b: raw}
	c.object(func() {
		c.text(`"verdict":`, (*string)(&d.Verdict))
		c.text(`"code":`, (*string)(&d.Code))
		c.text(`"pointer":`, &d.Pointer)
		if c.has(`"reason":`) {
			d.Reason = string(c.any(false))
		}
		d.PolicyIDs = c.list(`"policy_ids":`)
		d.Retryable = c.flag(`"retryable":`)
		if c.has(`"hint":`) {
			d.Hint = string(c.any(false))
		}
		d.Approvers = c.list(`"approvers":`)
		c.text(`"intent_id":`, &d.IntentID)
		c.text(`"fingerprint":`, &d.Fingerprint)
		c.text(`"policy_digest":`, &d.PolicyDigest)
		c.text(`"catalog_digest":`, &d.Catalog)
		d.Directory = c.number(`"directory":`)
		c.text(`"effect":`, &d.Effect)
		c.text(`"executor":`, &d.Executor)
	})
	return c.whole()
}

// quickFacts reads the part "facts" where nobody had to approve.
func quickFacts(raw []byte, f *policies.Facts) bool {
	c := cursor{b: raw}
	c.object(func() {
		if c.has(`"signer":`) {
			c.object(func() {
				c.text(`"kid":`, &f.Signer.KID)
				c.text(`"role":`, &f.Signer.Role)
			})
		}
		f.Roles = c.list(`"roles":`)
		if c.has(`"task":`) {
			f.Task = &policies.Task{}
			c.object(func() { c.task(f.Task) })
		}
		if c.has(`"plan":`) {
			f.Plan = &policies.Plan{}
			c.object(func() { c.plan(f.Plan) })
		}
		if c.has(`"skill":`) {
			f.Skill = &policies.Skill{}
			c.object(func() {
				c.text(`"name":`, &f.Skill.Name)
				c.text(`"digest":`, &f.Skill.Digest)
				c.text(`"effect":`, &f.Skill.Effect)
			})
		}
		if c.has(`"approvals":`) && !c.lit("null") {
			c.must("[]")
			f.Approvals = []policies.Approval{}
		}
		c.text(`"now":`, &f.Now)
	})
	return c.whole()
}

func (c *cursor) task(t *policies.Task) {
	c.text(`"task_id":`, &t.TaskID)
	c.text(`"plan_id":`, &t.PlanID)
	t.Revision = int(c.number(`"revision":`))
	t.Step = int(c.number(`"step":`))
	t.Skills = c.list(`"skills":`)
	c.text(`"deadline":`, &t.Deadline)
}

func (c *cursor) plan(p *policies.Plan) {
	c.text(`"plan_id":`, &p.PlanID)
	c.text(`"status":`, &p.Status)
	p.Epoch = int(c.number(`"epoch":`))
	p.Revision = int(c.number(`"revision":`))
	p.ReplanCount = int(c.number(`"replan_count":`))
	p.Steps = int(c.number(`"steps":`))
}
