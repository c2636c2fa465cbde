package audit

import (
	"bytes"
	"encoding/json"

	"aob.dev/writ/intents"
	"aob.dev/writ/internal/plainjson"
	"aob.dev/writ/storage"
)

// quickLine reads the lines that nearly all of a bundle are, in the one spelling
// that decodeLine accepts.
func quickLine(raw []byte) (line, bool) {
	c := plainjson.New(raw)
	if c.Lit(`{"record":`) {
		e := quickEntry(c)
		c.Must("}\n")
		return line{Record: e}, c.Whole()
	}
	if c.Lit(`{"leaf":`) {
		b := &Bare{}
		c.Object(func() {
			if c.Has(`"leaf":`) {
				b.Leaf = string(c.Any(true))
			}
			b.Proof = quickProof(c)
		})
		c.Must("}\n")
		return line{Leaf: b}, c.Whole() && b.Proof != nil && b.Leaf != ""
	}
	return line{}, false
}

func quickProof(c *plainjson.Cursor) []byte {
	if !c.Has(`"proof":`) {
		return nil
	}
	return c.Bytes()
}

func quickEntry(c *plainjson.Cursor) *Entry {
	e := &Entry{}
	c.Object(func() {
		if !c.Has(`"position":`) {
			c.Refuse()
		}
		e.Position = c.Integer()
		if c.Has(`"kind":`) {
			e.Kind = kind(c.Plain())
		}
		c.Text(`"at":`, &e.At)
		c.Text(`"tag":`, &e.Tag)
		if !c.Has(`"parts":`) {
			c.Refuse()
			return
		}
		e.Parts = quickParts(c)
		if c.Has(`"receipt":`) {
			e.Receipt = string(c.Plain())
			refuse(c, e.Receipt == "")
		}
		e.Proof = quickProof(c)
		refuse(c, e.Kind == "" || e.At == "" || e.Tag == "" || len(e.Proof) == 0)
	})
	return e
}

func refuse(c *plainjson.Cursor, odd bool) {
	if odd {
		c.Refuse()
	}
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
func quickParts(c *plainjson.Cursor) map[string]Part {
	out := make(map[string]Part, 4)
	c.Must("{")
	var last []byte
	for !c.Odd() && !c.Lit("}") {
		if last != nil {
			c.Must(",")
		}
		name := c.Plain()
		c.Must(":")
		if last != nil && bytes.Compare(last, name) >= 0 {
			c.Refuse()
		}
		last = name
		var p Part
		c.Object(func() {
			switch {
			case c.Has(`"text":`):
				p.body = c.Any(true)
				c.Must(`,"salt":`)
				p.Salt = c.Bytes()
				refuse(c, p.body == nil || len(p.Salt) == 0)
			case c.Has(`"digest":`):
				p.Digest = string(c.Plain())
				refuse(c, p.Digest == "")
			default:
				c.Refuse()
			}
		})
		out[string(name)] = p
	}
	return out
}

// readFacts reads the part "facts" of a record.
func readFacts(raw []byte) (f intents.Facts, err error) {
	if !quickFacts(raw, &f) {
		f = intents.Facts{}
		err = json.Unmarshal(raw, &f)
	}
	return f, err
}

// quickFacts reads facts where nobody had to approve.
func quickFacts(raw []byte, f *intents.Facts) bool {
	c := plainjson.New(raw)
	c.Object(func() {
		if c.Has(`"signer":`) {
			c.Object(func() {
				c.Text(`"kid":`, &f.Signer.KID)
				c.Text(`"role":`, &f.Signer.Role)
			})
		}
		f.Roles = c.List(`"roles":`)
		if c.Has(`"task":`) {
			f.Task = &intents.FactTask{}
			c.Object(func() { quickTask(c, f.Task) })
		}
		if c.Has(`"plan":`) {
			f.Plan = &intents.FactPlan{}
			c.Object(func() { quickPlan(c, f.Plan) })
		}
		if c.Has(`"skill":`) {
			f.Skill = &intents.FactSkill{}
			c.Object(func() {
				c.Text(`"name":`, &f.Skill.Name)
				c.Text(`"digest":`, &f.Skill.Digest)
				c.Text(`"effect":`, &f.Skill.Effect)
			})
		}
		if c.Has(`"approvals":`) && !c.Lit("null") {
			c.Must("[]")
			f.Approvals = []intents.Approval{}
		}
		c.Text(`"now":`, &f.Now)
	})
	return c.Whole()
}

func quickTask(c *plainjson.Cursor, t *intents.FactTask) {
	c.Text(`"task_id":`, &t.TaskID)
	c.Text(`"plan_id":`, &t.PlanID)
	t.Revision = int(c.Number(`"revision":`))
	t.Step = int(c.Number(`"step":`))
	t.Skills = c.List(`"skills":`)
	c.Text(`"deadline":`, &t.Deadline)
}

func quickPlan(c *plainjson.Cursor, p *intents.FactPlan) {
	c.Text(`"plan_id":`, &p.PlanID)
	c.Text(`"status":`, &p.Status)
	p.Epoch = int(c.Number(`"epoch":`))
	p.Revision = int(c.Number(`"revision":`))
	p.ReplanCount = int(c.Number(`"replan_count":`))
	p.Steps = int(c.Number(`"steps":`))
}
