package audit_test

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"aob.dev/writ/audit"
	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/testing/routertest"
	"aob.dev/writ/state"
	"aob.dev/writ/storage"
)

// dishonest is a log that an honest router began. It continues as its operator likes,
// who has every key: what is appended here is signed, timed and named as it should
// be, without any check by the state machine.
type dishonest struct {
	*world
	records slice

	plan  *routertest.Plan
	task  *routertest.Task // of the plan: the last one that was opened
	child *routertest.Task // that the task asked for, and that lives
	held  *intents.Answer  // an intent that waits for ben and one more
	ben   intents.Approval

	old      string            // intent_id of the plan's first revision
	done     *routertest.Task  // of the plan, or of the one that has left: one that has ended
	removed  *routertest.Plan  // that has left the state
	unsure   *intents.Answer   // an intent that was resolved
	deadline string            // of the task
	operator intents.Signer    // of the scene, if it has one
	grant    routertest.Intent // signed before the scene's revocation

	hidden map[int64][]string // parts that the bundle does not show
}

// appended is an intent before it is appended.
type appended struct {
	decision intents.Decision
	inputs   intents.DecisionInputs
	outcome  map[string]any   // nil: the intent stays open
	result   any              // of an executor
	summary  *storage.Summary // in place of the intent's
	silent   bool             // no summary
	replay   any              // of a run.replay
	texts    intents.Transient
}

// accept appends an intent as accepted, and its outcome. It returns its position and intent_id.
func (d *dishonest) accept(o routertest.Intent, changes ...func(*appended)) (int64, string) {
	d.Helper()
	u, err := intents.Parse(d.Sign(o))
	d.Must(err)
	b := u.Body()
	if b.Context == nil {
		b.Context = &intents.Context{}
	}
	row, _ := catalog.Builtin().Lookup(b.Intent.Type)
	at, now := d.now()
	a := appended{
		decision: intents.Decision{
			Verdict: intents.Allow, Code: intents.OK, IntentID: u.ID(), PolicyDigest: d.policyDigest(),
			Catalog: catalog.Builtin().Digest(), Directory: d.records.Next() - 1, Effect: string(row.Effect), Executor: row.Executor,
			Key: storage.NewIntentKeys(routertest.KeySecret).Key(b.Actor.Tenant, b.Actor.UserID, b.Intent.Type, b.Constraints.IdempotencyKey).String(),
		},
		inputs:  intents.DecisionInputs{Signer: intents.SignerInput{KID: o.By.KID, Role: string(o.By.Role)}, Roles: d.roles(o), Now: now},
		outcome: map[string]any{"of": -1, "attempt": 1, "status": "done", "code": "OK", "duration_ms": 0},
		result:  catalog.Ack{Accepted: true},
	}
	a.texts = u.AsRecorded().Transient()
	if t := d.task; t != nil && o.By.Role == intents.RoleTask {
		a.inputs.Task = &intents.TaskInput{TaskID: t.TaskID, PlanID: t.ID, Revision: t.Revision, Step: t.Step, Skills: []string{"feed"}, Deadline: d.deadline}
	}
	if d.plan != nil && b.Context.PlanID == d.plan.ID {
		v := d.plan.View()
		a.inputs.Plan = &intents.PlanInput{PlanID: v.PlanID, Status: string(v.Status), Epoch: v.Epoch, Revision: v.Revision, ReplanCount: v.ReplanCount, Steps: len(v.Steps)}
	}
	if b.Intent.Type == "skill.call" {
		a.decision.Effect = string(catalog.Pure)
		a.inputs.Skill = &intents.SkillInput{Name: "feed", Digest: intents.Digest([]byte("feed")), Effect: string(catalog.Pure), Trusted: true, OpenWorld: intents.No}
		a.result = catalog.SkillCallResult{Output: json.RawMessage(`1`)}
	}
	if b.Intent.Type == "skill.find" {
		a.result = catalog.SkillFindResult{Skills: []catalog.SkillHit{}}
	}
	for _, change := range changes {
		change(&a)
	}
	if t := a.inputs.Task; t != nil && t.Sources == nil {
		t.Sources = d.state().View().Sources(b.Actor.Tenant, b.Context.PlanID, nil, at)
	}
	parts := map[string]any{storage.PartEnvelope: u.AsRecorded().Signed(), storage.PartDecision: a.decision, storage.PartInputs: a.inputs}
	if b.Actor.Grant != "" {
		parts[storage.PartGrant] = b.Actor.Grant
	}
	if len(a.texts) > 0 {
		parts[storage.PartTransient] = a.texts
	}
	if a.replay != nil {
		parts[storage.PartReplay] = a.replay
	}
	if s := d.summary(u, a.decision); s != nil && !a.silent {
		parts[storage.PartSummary] = cmp.Or(a.summary, s)
	}
	position := d.add(storage.KindIntent, at, parts)
	if a.outcome == nil {
		return position, u.ID()
	}
	if row.Executor != catalog.ExecutorRouter {
		a.outcome["of"] = position
		d.adds(position, a.outcome)
	}
	ended := map[string]any{storage.PartOutcome: a.outcome, storage.PartResult: a.result}
	if outputs, there := a.outcome[storage.PartOutputs]; there {
		ended[storage.PartOutputs] = outputs
		delete(a.outcome, storage.PartOutputs)
	}
	d.add(storage.KindOutcome, at, ended)
	return position, u.ID()
}

// state is that after all records.
func (d *dishonest) state() *state.State {
	s := state.New()
	for _, r := range d.records {
		s.Observe(state.EntryOf(r))
	}
	return s
}

// adds completes the outcome of a task's call of a skill with the source that the call has read.
func (d *dishonest) adds(of int64, outcome map[string]any) {
	d.Helper()
	var f intents.DecisionInputs
	d.Must(json.Unmarshal(d.records[of].Parts[storage.PartInputs], &f))
	if f.Task == nil || f.Skill == nil {
		return
	}
	o, err := state.ReadIntent(d.records[of])
	d.Must(err)
	sources := []intents.Source{f.Skill.Source()}
	if o.Type == state.TypeSkillCall && !intents.CoverSources(d.state().SourcesOf(o.Tenant, o.Context.PlanID), sources) {
		outcome["sources"] = sources
	}
}

// summarised gives an intent the summary of another one.
func (d *dishonest) summarised(other routertest.Intent) func(*appended) {
	d.Helper()
	u, err := intents.Parse(d.Sign(other))
	d.Must(err)
	return func(a *appended) { a.summary = d.summary(u, a.decision) }
}

// accepted is accept where only the position counts.
func (d *dishonest) accepted(o routertest.Intent, changes ...func(*appended)) int64 {
	d.Helper()
	position, _ := d.accept(o, changes...)
	return position
}

// now is the time of the next record, and the one that its decision gives itself.
func (d *dishonest) now() (time.Time, string) {
	at := d.Clock.Now()
	if last := d.records[len(d.records)-1].At; last.After(at) {
		at = last
	}
	return at, intents.FormatTime(d.Clock.Now())
}

// roles that an intent is decided with: those that its signer claims.
func (d *dishonest) roles(o routertest.Intent) []string {
	switch {
	case o.By.KID == d.Operator.KID:
		return []string{"admin", "auditor", "approver"}
	case o.Roles != nil:
		return o.Roles
	default:
		return []string{"user"}
	}
}

func (d *dishonest) policyDigest() string {
	d.Helper()
	at := slices.IndexFunc(d.records, func(r storage.Record) bool { return r.Kind == storage.KindIntent })
	dec, err := intents.ReadDecision(d.records[at].Parts[storage.PartDecision])
	d.Must(err)
	return dec.PolicyDigest
}

// add appends a record of given parts.
func (d *dishonest) add(kind storage.Kind, at time.Time, parts map[string]any) int64 {
	d.Helper()
	raw := make(map[string]json.RawMessage, len(parts))
	for name, v := range parts {
		body, err := json.Marshal(v)
		d.Must(err)
		raw[name] = body
	}
	r := storage.NewRecord(kind, at, raw)
	r.Position = d.records.Next()
	d.records = append(d.records, r)
	return r.Position
}

// control appends a control record.
func (d *dishonest) control(content map[string]any) int64 {
	d.Helper()
	at, _ := d.now()
	return d.add(storage.KindControl, at, map[string]any{storage.PartControl: content})
}

// ends appends an outcome of an intent.
func (d *dishonest) ends(of int64, status intents.Status, code intents.Code) int64 {
	d.Helper()
	at, _ := d.now()
	outcome := map[string]any{"of": of, "attempt": 1, "status": status, "code": code, "duration_ms": 0}
	if code != intents.ApprovalRejected && code != intents.ApprovalExpired && code != intents.Cancelled && code != intents.Changed {
		d.adds(of, outcome)
	}
	return d.add(storage.KindOutcome, at, map[string]any{storage.PartOutcome: outcome})
}

// says appends somebody's decision about the held intent, and counts it.
func (d *dishonest) says(o routertest.Intent) (position int64, by string, yes intents.Approval) {
	d.Helper()
	if o.By.KID == "" {
		o.By = d.Gateway
	}
	o.Type, o.Ctx.TurnID = "hitl.approve", "approval"
	if o.Args == nil {
		o.Args = catalog.Approve{IntentID: d.held.IntentID, Decision: catalog.DecisionApprove}
	}
	position, by = d.accept(o, func(a *appended) {
		a.result = catalog.ApproveResult{IntentID: d.held.IntentID, State: catalog.ApprovalReleased}
	})
	_, now := d.now()
	return position, by, intents.Approval{UserID: o.User, At: now, Roles: d.roles(o)}
}

// released appends the release of an intent, and its outcome.
func (d *dishonest) released(of int64, by string, approvals ...intents.Approval) int64 {
	d.Helper()
	position := d.releases(of, by, approvals...)
	envelope, err := intents.ReadSigned(d.records[of].Parts[storage.PartEnvelope])
	d.Must(err)
	var said intents.Body
	d.Must(json.Unmarshal([]byte(envelope.Payload), &said))
	if said.Intent.Type != state.TypeApprovalAsk {
		d.ends(of, intents.Done, intents.OK)
		return position
	}
	answer, err := state.AnswerOf(said.Intent.Args, approvals)
	d.Must(err)
	d.answers(of, json.RawMessage(answer))
	return position
}

// answers appends the alleged answers of people to a question.
func (d *dishonest) answers(of int64, result any) int64 {
	d.Helper()
	at, _ := d.now()
	return d.add(storage.KindOutcome, at, map[string]any{storage.PartOutcome: map[string]any{"of": of, "attempt": 1, "status": "done", "code": "OK", "duration_ms": 0}, storage.PartResult: result})
}

// releases appends a release alone.
func (d *dishonest) releases(of int64, by string, approvals ...intents.Approval) int64 {
	d.Helper()
	r := d.records[of]
	var f intents.DecisionInputs
	dec, err := intents.ReadDecision(r.Parts[storage.PartDecision])
	d.Must(err)
	d.Must(json.Unmarshal(r.Parts[storage.PartInputs], &f))
	at, now := d.now()
	dec.Verdict, dec.Code, dec.Reason, dec.Hint, dec.PolicyIDs, dec.Approvers, dec.Hold = intents.Allow, intents.OK, "", "", nil, nil, nil
	dec.Directory, dec.Key, dec.Pointer, dec.Retryable = d.records.Next()-1, "", "", false
	f.Approvals, f.Now = approvals, now
	position := d.add(storage.KindRelease, at, map[string]any{storage.PartRelease: map[string]any{"of": of, "by": by, "decision": dec, "facts": f}})
	return position
}

// bundle is the log as its operator exports it. Its bytes follow from the records:
// salts count, so that what was written once is written so again.
func (d *dishonest) bundle() []byte {
	d.Helper()
	out := slices.Clone(d.records)
	for i, r := range out {
		salts := make(map[string][]byte, len(r.Salts))
		for name := range r.Salts {
			salts[name] = append(binary.BigEndian.AppendUint64(nil, uint64(i)), []byte(name+strings.Repeat("-", 24-len(name)))...)
		}
		out[i].Salts = salts
	}
	return d.withheld(d.export(out, audit.Selection{}))
}

// withheld is a bundle without the removed parts.
func (d *dishonest) withheld(bundle []byte) []byte {
	d.Helper()
	var lines [][]byte
	for line := range bytes.Lines(bundle) {
		var l struct{ Record *audit.Entry }
		d.Must(json.Unmarshal(line, &l))
		if e := l.Record; e != nil && d.hidden[e.Position] != nil {
			for _, part := range d.hidden[e.Position] {
				e.Parts[part] = audit.Part{Digest: partDigest(e.Parts[part])}
			}
			line = encode(d, map[string]*audit.Entry{"record": e})
		}
		lines = append(lines, line)
	}
	return resum(d, lines)
}
