package audit_test

import (
	"bytes"
	"encoding/json"
	"maps"
	"strings"
	"testing"

	"aob.dev/writ/audit"
	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/testing/routertest"
	"aob.dev/writ/policies"
	"aob.dev/writ/storage"
)

// erasedWorld is a log in which the first script, at position at, was erased by
// the intent at position by. others may erase nothing: an auditor of the tenant,
// and the administrator of another.
type erasedWorld struct {
	*world
	at, by       int64
	intent       catalog.RecordErase
	clerk, rival intents.Signer
}

func newErased(t *testing.T) erasedWorld {
	t.Helper()
	w := newWorld(t)
	w.live(3)
	x := erasedWorld{world: w, at: -1, clerk: w.AddOperator("default", "carl", "auditor"), rival: w.AddOperator("acme", "eve", "admin")}
	for _, r := range w.Records() {
		if bytes.Contains(r.Parts[storage.PartEnvelope], []byte("print(0)")) {
			var d intents.Decision
			w.Must(json.Unmarshal(r.Parts[storage.PartDecision], &d))
			x.at, x.intent = r.Position, catalog.RecordErase{Tenant: "default", IntentID: d.IntentID, Position: r.Position, Reason: "asked for"}
		}
	}
	x.intent.Parts = []string{catalog.ErasesEnvelope, catalog.ErasesResult}
	x.by = *w.Want(w.Admin("record.erase", x.intent), intents.OK).Position
	return x
}

// forged is the log with another intent in place of the record.erase, signed
// by any key, with its decision as the router would have written it.
func (x erasedWorld) forged(args any, by *intents.Signer, tenant, user string, change func(*intents.Decision)) slice {
	x.Helper()
	o := routertest.Intent{By: x.Operator, Type: "record.erase", Args: args, Tenant: tenant, User: user}
	if by != nil {
		o.By = *by
	}
	u, err := intents.Parse(x.Sign(o))
	x.Must(err)
	return x.rewritten(x.by, func(r *storage.Record) {
		var d intents.Decision
		var f map[string]any
		x.Must(json.Unmarshal(r.Parts[storage.PartDecision], &d))
		x.Must(json.Unmarshal(r.Parts[storage.PartInputs], &f))
		d.IntentID = u.ID()
		b := u.Body()
		d.Key = storage.NewIntentKeys(routertest.KeySecret).Key(b.Actor.Tenant, b.Actor.UserID, b.Intent.Type, b.Constraints.IdempotencyKey).String()
		if change != nil {
			change(&d)
		}
		f["signer"] = map[string]any{"kid": o.By.KID, "role": "operator"}
		for name, v := range map[string]any{storage.PartEnvelope: u.AsRecorded().Signed(), storage.PartDecision: d, storage.PartInputs: f} {
			if r.Parts[name], err = json.Marshal(v); err != nil {
				x.Fatal(err)
			}
		}
	})
}

// TestErased: what an operator has erased is withheld, and verifies; to decide it
// again is not possible, and the report says why.
func TestErased(t *testing.T) {
	x := newErased(t)
	for name, sel := range map[string]audit.Selection{"all": {}, "tenant": {Tenant: "default", Complete: true}, "masked": {Masked: true}} {
		bundle := x.export(x.Journal, sel)
		if bytes.Contains(bundle, []byte("print(0)")) || !bytes.Contains(bundle, []byte("print(1)")) {
			t.Errorf("%s: the bundle shows the wrong scripts", name)
		}
		r := x.verify(bundle, audit.Options{Trust: x.trust(), Replay: true})
		if !r.OK || !r.Complete || r.Withheld != 2 || r.Why["the intent is withheld: it was erased"] != 1 || !strings.Contains(r.String(), "withheld: parts of 2 records") {
			t.Errorf("%s: %+v %v", name, r, r.FirstBad)
		}
	}
	found, err := audit.Find(t.Context(), x.Journal, x.intent.IntentID)
	x.Must(err)
	if len(found) != 2 || found[0].Withheld[storage.PartEnvelope] == "" || found[0].Type != "exec_python" || found[1].Withheld[storage.PartResult] == "" {
		t.Errorf("%+v", found)
	}
	s := x.source(x.Journal)
	h, err := audit.Fsck(t.Context(), s, []intents.Key{x.ledgerKey.VerificationKey()}, nil)
	x.Must(err)
	if !h.OK {
		t.Errorf("%v", h.FirstBad)
	}
	if p, err := audit.Prove(t.Context(), s, x.intent.IntentID); err != nil || p.Check(*x.trust()) != nil {
		t.Errorf("%v %v", err, p.Check(*x.trust()))
	}
}

// TestErasedForged: an erasure hides only what it names, and one that
// was not allowed does not count, whoever wrote the log.
func TestErasedForged(t *testing.T) {
	x := newErased(t)
	with := func(change func(*catalog.RecordErase)) catalog.RecordErase {
		a := x.intent
		change(&a)
		return a
	}
	lost := func(at int64, parts ...string) slice {
		out := slice(x.Records())
		out[at], _ = out[at].Without(parts...)
		return out
	}
	own := with(func(a *catalog.RecordErase) { a.Tenant = "" })
	none := "no erasure in the log took them away"
	for name, c := range map[string]struct {
		records slice
		at      int64
		reason  string
	}{
		"the erasure left out of the log": {x.forged(with(func(a *catalog.RecordErase) { a.Position-- }), nil, "", "", nil), x.at, none},
		"of the result alone":             {x.forged(with(func(a *catalog.RecordErase) { a.Parts = []string{catalog.ErasesResult} }), nil, "", "", nil), x.at, none},
		"of the intent alone":             {x.forged(with(func(a *catalog.RecordErase) { a.Parts = []string{catalog.ErasesEnvelope} }), nil, "", "", nil), x.at + 1, none},
		"of another intent":               {x.forged(with(func(a *catalog.RecordErase) { a.IntentID = intents.Digest(nil) }), nil, "", "", nil), x.by, "another intent or tenant"},
		"of another tenant":               {x.forged(with(func(a *catalog.RecordErase) { a.Tenant = "acme" }), nil, "", "", nil), x.by, "another intent or tenant"},
		"of what comes after it":          {x.forged(with(func(a *catalog.RecordErase) { a.Position = x.by + 1 }), nil, "", "", nil), x.by, "comes after it"},
		"by who may not":                  {x.forged(own, &x.clerk, "default", "carl", nil), x.by, "who might not"},
		"by another tenant's operator":    {x.forged(x.intent, &x.rival, "acme", "eve", nil), x.by, "operator of another tenant"},
		"by another's as its own":         {x.forged(own, &x.rival, "acme", "eve", nil), x.by, "another intent or tenant"},
		"by a key that is no operator's":  {x.forged(own, &x.Planner, "default", "ana", nil), x.by, ""},
		"refused": {x.forged(x.intent, nil, "", "", func(d *intents.Decision) {
			d.Verdict, d.Code = intents.Deny, intents.RBACForbidden
		}), x.at, none},
		"a summary that lies": {x.rewritten(x.at-2, func(r *storage.Record) {
			r.Parts[storage.PartSummary] = bytes.Replace(r.Parts[storage.PartSummary], []byte(`"user":"ana"`), []byte(`"user":"bob"`), 1)
		}), x.at - 2, "its summary says something else"},
		"of more than it names": {lost(x.by-1, storage.PartResult, storage.PartReason), 0, ""},
		"of a decision":         {lost(x.at, storage.PartDecision), x.at, "cannot be erased or masked"},
		"of the genesis":        {lost(0, storage.PartControl), 0, "cannot be erased or masked"},
	} {
		if name == "of more than it names" {
			at := x.at + 2 // an intent or an outcome of the plan, which was not erased
			for c.records[at].Kind != storage.KindOutcome || c.records[at].Parts[storage.PartResult] == nil {
				at++
			}
			c.records, c.at, c.reason = lost(at, storage.PartResult), at, none
		}
		s := x.source(c.records)
		var out bytes.Buffer
		_, err := audit.Export(t.Context(), &out, s, audit.Selection{})
		if err == nil { // else the exporter has found it, and there is no bundle
			r := x.verify(out.Bytes(), audit.Options{Trust: x.trust()})
			if r.OK || r.FirstBad == nil || r.FirstBad.Position != c.at || !strings.Contains(r.FirstBad.Reason, c.reason) {
				t.Errorf("%s at %d: %v", name, c.at, r.FirstBad)
			}
			continue
		}
		h, err := audit.Fsck(t.Context(), s, []intents.Key{x.ledgerKey.VerificationKey()}, nil)
		x.Must(err)
		if h.OK {
			t.Errorf("%s: the directory is sound", name)
		}
	}
}

// TestErasedInBundle: who leaves a part out of a bundle cannot lean on an erasure
// of something else, nor on that it was masked.
func TestErasedInBundle(t *testing.T) {
	x := newErased(t)
	bundle := x.export(x.Journal, audit.Selection{})
	step := int64(-1) // an intent on which others depend
	for _, r := range x.Records() {
		if bytes.Contains(r.Parts[storage.PartEnvelope], []byte(`\"type\":\"step\"`)) && step < 0 {
			step = r.Position
		}
	}
	for name, c := range map[string]struct {
		at     int64
		parts  []string
		reason string
	}{
		"an intent that others use": {step, []string{storage.PartEnvelope, storage.PartGrant}, "cannot be erased"},
		"the erasure itself":        {x.by, []string{storage.PartEnvelope}, "cannot be erased"},
		"another intent":            {x.at - 2, []string{storage.PartEnvelope, storage.PartGrant}, "no erasure in the log took them away"},
		"a grant":                   {x.at - 2, []string{storage.PartGrant}, "the grant is withheld, and the intent is not"},
		"a summary":                 {x.at, []string{storage.PartSummary}, "cannot be erased or masked"},
		"an outcome":                {x.at + 1, []string{storage.PartOutcome}, "cannot be erased or masked"},
		"facts":                     {x.at, []string{storage.PartInputs}, "cannot be erased or masked"},
	} {
		var lines [][]byte
		for line := range bytes.Lines(bundle) {
			var l struct {
				Record *audit.Entry `json:"record"`
			}
			x.Must(json.Unmarshal(line, &l))
			if e := l.Record; e != nil && e.Position == c.at {
				for _, part := range c.parts {
					e.Parts[part] = audit.Part{Digest: partDigest(e.Parts[part])}
				}
				line = encode(t, map[string]any{"record": e})
			}
			lines = append(lines, line)
		}
		r := x.verify(resum(t, lines), audit.Options{Trust: x.trust()})
		if r.OK || r.FirstBad.Position != c.at || !strings.Contains(r.FirstBad.Reason, c.reason) {
			t.Errorf("%s at %d: %v", name, c.at, r.FirstBad)
		}
	}
}

// TestErasedApproved: an erasure that people had to approve counts from its release on.
func TestErasedApproved(t *testing.T) {
	w := newWorld(t)
	w.apiKeys("ben")
	w.Want(w.Admin("admin.put", catalog.AdminPut{Tenant: "default", User: &catalog.User{UserID: "ben", Roles: []string{"approver"}}}), intents.OK)
	own := w.AddOperator("default", "olga", "admin")
	source := maps.Clone(policies.Embedded())
	source["ours/more.rego"] = []byte(`package writ.ext.ours

# METADATA
# title: Ours
# description: Two of us erase.
# custom:
#   id: ext.ours
hold contains {"id": "ext.ours", "reason": "Two of us erase.", "approvers": ["ben"]} if input.intent.type == "record.erase"
`)
	_, err := w.Policy.ReplaceTree(t.Context(), policies.Tree{Source: source}, w.Router.SelfProof)
	w.Must(err)
	w.Must(w.Router.PolicyChanged(t.Context()))
	find := w.OK(routertest.Intent{By: w.Planner, Type: "skill.find", Args: catalog.SkillFind{Query: "anas-word"}})
	held := w.Want(w.Do(routertest.Intent{By: own, Tenant: "default", User: "olga", Type: "record.erase", Args: catalog.RecordErase{
		IntentID: find.IntentID, Position: *find.Position, Parts: []string{catalog.ErasesEnvelope}, Reason: "asked for",
	}}), intents.ApprovalRequired)
	early := slice(w.Records())
	early[*find.Position], _ = early[*find.Position].Without(storage.PartEnvelope, storage.PartGrant)
	w.Want(w.Do(routertest.Intent{
		By: w.Gateway, Type: "hitl.approve", User: "ben", Roles: []string{"approver"}, Grant: through("ben"),
		Args: catalog.Approve{IntentID: held.IntentID, Decision: catalog.DecisionApprove},
	}), intents.OK)
	for name, sel := range map[string]audit.Selection{"all": {}, "tenant": {Tenant: "default", Complete: true}} {
		bundle := w.export(w.Journal, sel)
		r := w.verify(bundle, audit.Options{Trust: w.trust()})
		if !r.OK || r.Withheld != 1 || bytes.Contains(bundle, []byte("anas-word")) {
			t.Errorf("%s: %+v %v", name, r, r.FirstBad)
		}
	}
	if r := w.verify(w.export(early, audit.Selection{}), audit.Options{Trust: w.trust()}); r.OK || r.FirstBad.Position != *find.Position {
		t.Errorf("erased before it was approved: %v", r.FirstBad)
	}
}

// TestErasedPlan: a bundle of a log whose plans' intents were erased verifies, and reports
// that these cannot be decided again; what remains of them is judged.
func TestErasedPlan(t *testing.T) {
	w := newWorld(t)
	var plans []*routertest.Telling
	for _, how := range []string{"complete", "failed", "cancel"} {
		plan, end := w.Tell("p_"+how, "anas-word", how)
		end()
		plans = append(plans, plan)
	}
	total := 0
	for _, plan := range plans {
		plan.Erase()
		total += len(plan.Intents)
	}
	for name, sel := range map[string]audit.Selection{"all": {}, "tenant": {Tenant: "default", Complete: true}, "masked": {Masked: true}} {
		bundle := w.export(w.Journal, sel)
		if bytes.Contains(bundle, []byte("anas-word")) {
			t.Errorf("%s: the bundle shows a text", name)
		}
		r := w.verify(bundle, audit.Options{Trust: w.trust(), Replay: true})
		if !r.OK || !r.Complete || r.Why["the intent is withheld: it was erased"] != int64(total) || r.Replayed == 0 {
			t.Errorf("%s: %+v %v", name, r, r.FirstBad)
		}
	}
	s := w.source(w.Journal)
	h, err := audit.Fsck(t.Context(), s, []intents.Key{w.ledgerKey.VerificationKey()}, nil)
	w.Must(err)
	if !h.OK {
		t.Errorf("%v", h.FirstBad)
	}
	for _, a := range plans[0].Intents {
		if p, err := audit.Prove(t.Context(), s, a.IntentID); err != nil || p.Check(*w.trust()) != nil {
			t.Errorf("%v %v", err, p.Check(*w.trust()))
		}
	}
}

// TestErasedAnswer: a plan without steps stays legal when the intent of its answer, that of
// its end, or both were erased.
func TestErasedAnswer(t *testing.T) {
	w := newWorld(t)
	for name, erased := range map[string][]int{"p_answer": {0}, "p_end": {1}, "p_both": {0, 1}} {
		p := w.NewPlan(name)
		w.Want(p.Open(), intents.OK)
		w.Want(p.Claim(), intents.OK)
		o := p.PlanIntent(nil)
		o.Args = catalog.Plan{PlanID: p.ID, Epoch: 1, Revision: 1, Steps: []catalog.PlanStep{}, Answer: "These."}
		answers := []*intents.Answer{w.Want(w.Do(o), intents.OK), w.Want(p.Complete(), intents.OK)}
		for _, i := range erased {
			w.Want(w.Erase(answers[i], catalog.ErasesEnvelope), intents.OK)
		}
	}
	r := w.verify(w.export(w.Journal, audit.Selection{}), audit.Options{Trust: w.trust(), Replay: true})
	if !r.OK || r.Why["the intent is withheld: it was erased"] != 4 {
		t.Errorf("%+v %v", r, r.FirstBad)
	}
}

// TestErasedPlanForged: an erased intent of a plan is still checked against the state, by
// its summary.
func TestErasedPlanForged(t *testing.T) {
	w := newWorld(t)
	plan, end := w.Tell("p1", "anas-word", "complete")
	end()
	plan.Erase()
	at := func(i int) int64 { return *plan.Intents[i].Position }
	revision, closed := at(1), at(len(plan.Intents)-1)
	summary := func(position int64, from, to string) slice {
		return w.rewritten(position, func(r *storage.Record) {
			was := r.Parts[storage.PartSummary]
			if r.Parts[storage.PartSummary] = bytes.Replace(was, []byte(from), []byte(to), 1); bytes.Equal(was, r.Parts[storage.PartSummary]) {
				t.Fatalf("%s is not in %s", from, was)
			}
		})
	}
	for name, c := range map[string]struct {
		records slice
		at      int64
		reason  string
	}{
		"another task":       {summary(at(2), `"suggestion_bytes":20,"task_id":"`, `"suggestion_bytes":20,"task_id":"another`), at(2), "no such task"},
		"steps out of order": {summary(revision, `"step":1`, `"step":2`), revision, "step numbers"},
		"a later revision":   {summary(revision, `"revision":1`, `"revision":2`), revision, "revision"},
		"an older driver":    {summary(closed, `"epoch":2`, `"epoch":1`), closed, "epoch"},
		"another type":       {summary(closed, `"type":"plan.close"`, `"type":"plan.claim"`), closed, "others rest on"},
		"no arguments":       {summary(closed, `"args":{`, `"more":{`), closed, "others rest on"},
	} {
		s := w.source(c.records)
		var out bytes.Buffer
		if _, err := audit.Export(t.Context(), &out, s, audit.Selection{}); err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		r := w.verify(out.Bytes(), audit.Options{Trust: w.trust()})
		if r.OK || r.FirstBad == nil || r.FirstBad.Position != c.at || !strings.Contains(r.FirstBad.Reason, c.reason) {
			t.Errorf("%s at %d: %v", name, c.at, r.FirstBad)
		}
	}
}
