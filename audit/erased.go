package audit

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/state"
	"aob.dev/writ/storage"
	"aob.dev/writ/storage/ledger"
)

// capabilityErase is what operators need to take parts of records away.
const capabilityErase = "admin:records"

// missing are parts of a record that are not there. A later record.erase has to name
// them, or a user.erase their user.
type missing struct {
	position               int64 // of the record
	kind                   storage.Kind
	tag                    string // of the record's tenant
	intentID, tenant, user string // of the intent; empty: neither the envelope nor its summary is shown
	parts                  []string
}

// take removes the parts that an erasure names so.
func (m *missing) take(named []string) {
	for _, name := range named {
		m.parts = slices.DeleteFunc(m.parts, func(part string) bool { return slices.Contains(state.ErasedParts[m.kind][name], part) })
	}
}

func (m *missing) reason() string {
	if slices.Equal(m.parts, []string{storage.PartTransient}) {
		return "the texts that came beside it are missing, and its plan has not ended"
	}
	return fmt.Sprintf("its parts %s are missing, and no erasure in the log took them away", strings.Join(m.parts, ", "))
}

// mayMiss looks at the parts of a record that are withheld: whether such ones ever
// may be, and whether a mask accounts for them; if not, an erasure has to.
func (it *item) mayMiss() error {
	all := slices.Sorted(maps.Keys(it.Erased))
	for i, name := range all { // they are retained, and their line is not
		all[i] = strings.Clone(name)
	}
	gone := all
	var may []string
	for _, parts := range state.ErasedParts[it.Kind] {
		may = append(may, parts...)
	}
	if it.Kind == storage.KindIntent {
		gone = slices.DeleteFunc(slices.Clone(all), func(name string) bool { return name == storage.PartTransient })
	}
	for _, name := range gone {
		if !slices.Contains(may, name) {
			return fmt.Errorf("part %q is withheld, and such a part cannot be erased or masked", name)
		}
	}
	if it.Kind == storage.KindIntent && len(gone) > 0 {
		d, err := intents.ReadDecision(it.Parts[storage.PartDecision])
		if err != nil {
			return fmt.Errorf("part %q cannot be read", storage.PartDecision)
		}
		_, summary := it.Parts[storage.PartSummary]
		it.blind = !summary || d.Verdict == intents.Hold
		mask := d.Masks() && slices.Equal(gone, []string{storage.PartEnvelope})
		switch {
		case mask:
			return nil
		case it.blind:
			return errors.New("the intent is withheld without a mask, and it is one that cannot be erased")
		case !slices.Contains(gone, storage.PartEnvelope):
			return errors.New("the grant is withheld, and the intent is not")
		}
	}
	it.missing = &missing{position: it.Position, kind: it.Kind, tag: strings.Clone(it.leaf.TenantTag), parts: all}
	return nil
}

// hidesIntent reports whether the record is of an intent whose envelope is not shown.
func (it *item) hidesIntent() bool {
	return it.Kind == storage.KindIntent && it.withheld()
}

func (it *item) whyHidden() string {
	if it.missing == nil {
		return "a policy masks it"
	}
	return "it was erased"
}

// kept reports whether the summary has what the state needs of a router intent.
func (o *intent) kept() bool {
	return o.summary != nil && o.summary.Args != nil && state.RetainsArgs(o.body.Intent.Type)
}

// id returns the id of the intent; if it is not shown, the one in its decision.
func (o *intent) id() string {
	if o.hidden() {
		return o.decision.IntentID
	}
	return o.opened.ID()
}

// checkTransient checks that the record has the texts whose digests the intent signs, unless they are
// gone, and no others. A refused intent's are not recorded.
func (it *item) checkTransient() error {
	o := it.intent
	digests := state.TransientDigests(o.body.Intent.Type, o.body.Intent.Args)
	belongs := len(digests) > 0 && o.decision.Verdict != intents.Deny
	raw, there := it.Parts[storage.PartTransient]
	_, gone := it.Erased[storage.PartTransient]
	switch {
	case belongs != (there || gone):
		return errors.New("the texts beside the intent are not those whose digests it signs: they are missing, or do not belong to it")
	case !there:
		return nil
	}
	texts, err := intents.ReadTransient(raw)
	if err != nil {
		return errors.New("part transient cannot be read")
	}
	if texts.Match(digests) != nil {
		return errors.New("a text beside the intent is not the one whose digest it signs")
	}
	return nil
}

// named is what its idempotency key is the HMAC of, as a digest; zero: the intent is not shown.
func (o *intent) named() (k storage.Key) {
	if o.hidden() {
		return k
	}
	return nameKeys.Key(o.body.Actor.Tenant, o.body.Actor.UserID, o.body.Intent.Type, o.body.Constraints.IdempotencyKey)
}

// nameKeys makes keys that are compared here alone.
var nameKeys = storage.NewIntentKeys(nil)

// lacks notes that parts are missing of a record about an intent.
func (f *applier) lacks(it *item, intent int64, intentID, tenant, user string) {
	if m := it.missing; m != nil {
		m.intentID, m.tenant, m.user = intentID, tenant, user
		f.lacking[intent] = append(f.lacking[intent], m)
	}
}

// explainEnded accounts for the texts beside the openings of plans that have ended.
func (f *applier) explainEnded() {
	retained := f.state.RetainedTransient()
	for intent, all := range f.lacking {
		f.lacking[intent] = slices.DeleteFunc(all, func(m *missing) bool {
			if !retained[m.position] {
				m.parts = slices.DeleteFunc(m.parts, func(part string) bool { return part == storage.PartTransient })
			}
			return len(m.parts) == 0
		})
		if len(f.lacking[intent]) == 0 {
			delete(f.lacking, intent)
		}
	}
}

// unexplained are the records that lack parts which no erasure names, or the texts beside the
// opening of a plan that has not ended.
func (f *applier) unexplained() []*missing {
	f.explainEnded()
	all := slices.Concat(slices.Collect(maps.Values(f.lacking))...)
	slices.SortFunc(all, func(a, b *missing) int { return cmp.Compare(a.position, b.position) })
	return all
}

// erase is the effect of a record.erase: from its own position on it explains why the
// parts that it names are missing, of an earlier intent of its tenant.
func (f *applier) erase(it *item) error {
	a, err := unmarshal[catalog.RecordErase](it.intent.body.Intent.Args)
	if err != nil {
		return err
	}
	if err := f.mayErase(it); err != nil {
		return err
	}
	if a.Position >= it.Position {
		return errors.New("erases a record that comes after it")
	}
	tenant := it.intent.body.Actor.Tenant
	var left []*missing
	for _, m := range f.lacking[a.Position] {
		same := m.intentID == a.IntentID && m.tenant == state.TargetTenant(tenant, a.Tenant)
		if m.intentID == "" {
			same = m.tag == it.leaf.TenantTag || tenant == ledger.SystemTenant
		}
		if !same {
			return fmt.Errorf("names record %d, which is of another intent or tenant", a.Position)
		}
		if m.take(a.Parts); len(m.parts) > 0 {
			left = append(left, m)
		}
	}
	if f.lacking[a.Position] = left; len(left) == 0 {
		delete(f.lacking, a.Position)
	}
	return nil
}

// eraseUser is the effect of a user.erase: from its own position on it explains every part that is
// missing of the records of its user's earlier intents.
func (f *applier) eraseUser(it *item) error {
	a, err := unmarshal[catalog.UserErase](it.intent.body.Intent.Args)
	if err != nil {
		return err
	}
	if err := f.mayErase(it); err != nil {
		return err
	}
	actor := it.intent.body.Actor.Tenant
	tenant := state.TargetTenant(actor, a.Tenant)
	for intent, all := range f.lacking {
		all = slices.DeleteFunc(all, func(m *missing) bool {
			hidden := m.intentID == "" && (m.tag == it.leaf.TenantTag || actor == ledger.SystemTenant) // a mask hides whose it is
			if hidden || m.intentID != "" && m.tenant == tenant && m.user == a.UserID {
				m.take([]string{catalog.ErasesEnvelope, catalog.ErasesResult})
			}
			return len(m.parts) == 0
		})
		if f.lacking[intent] = all; len(all) == 0 {
			delete(f.lacking, intent)
		}
	}
	return nil
}

// mayErase: the operator of an erasure had the right. Its signature is checked elsewhere; this is
// checked here, whether decisions are replayed or not.
func (f *applier) mayErase(it *item) error {
	body := it.intent.body
	tenant := body.Actor.Tenant
	dir := f.generation(it.intent.decision.Directory)
	roles, known, disabled := dir.UserRoles(tenant, body.Actor.UserID)
	caps, there := dir.Capabilities(tenant, roles)
	switch {
	case !there:
		return errors.New("by an operator of a tenant that is not there")
	case it.intent.inputs.Signer.Role != string(intents.RoleOperator):
		return errors.New("not by an operator")
	case !known || disabled || !state.Covers(caps, capabilityErase):
		return errors.New("by an operator who might not")
	case state.ForeignTenant(tenant, body.Intent.Type, body.Intent.Args):
		return errors.New("by an operator of another tenant")
	}
	return nil
}

// checkHidden verifies what is known of an intent that is not shown. Its signature
// cannot be checked; what the record has must be right.
func (v *verifier) checkHidden(j *job) error {
	o := j.intent
	key, err := j.key(o.inputs.Signer.KID)
	if err == nil && string(key.Role) != o.inputs.Signer.Role {
		err = errors.New("the record gives its signer another role")
	}
	if d := o.decision; err == nil && d.Verdict == intents.Deny && (d.Code == intents.OK || d.Code == "") {
		err = errNoCode
	}
	if err == nil && v.opts.Replay {
		err = v.replayer.tally(unreplayable("the intent is withheld: " + j.whyHidden()))
	}
	if err != nil || o.decision.Verdict == intents.Deny {
		return err
	}
	if err := mayDo(o.body.Intent.Type, key.Role, o.decision); err != nil {
		return err
	}
	return j.scope(key.Role, o.body.Actor.Tenant, o.body.Actor.UserID, o.ctx)
}

// account counts what was erased of the records in a bundle, and the
// intents that erased it, or that ended the plan.
func (x *exporter) account(ctx context.Context, it *item) error {
	if o := it.intent; o != nil && o.decision.Verdict != intents.Deny {
		var a struct {
			PlanID string `json:"plan_id"`
		}
		_ = json.Unmarshal(o.body.Intent.Args, &a) // empty: it is about no plan
		plan := o.body.Actor.Tenant + "/" + a.PlanID
		if _, gone := it.Erased[storage.PartTransient]; gone {
			x.ended[plan] = it.Position
		}
		if typ := o.body.Intent.Type; typ == state.TypePlanClose || typ == state.TypeCancel {
			delete(x.ended, plan)
		}
	}
	if it.withheld() {
		if err := x.lacks(ctx, it); err != nil {
			return err
		}
	}
	o := it.intent
	if o == nil || o.decision.Verdict == intents.Deny {
		return nil
	}
	switch o.body.Intent.Type {
	case state.TypeErase:
		if a, err := unmarshal[catalog.RecordErase](o.body.Intent.Args); err == nil {
			delete(x.lacking, a.Position)
		}
	case state.TypeUserErase:
		if a, err := unmarshal[catalog.UserErase](o.body.Intent.Args); err == nil {
			user := state.TargetTenant(o.body.Actor.Tenant, a.Tenant) + "/" + a.UserID
			maps.DeleteFunc(x.lacking, func(_ int64, of string) bool { return of == user })
		}
	}
	return nil
}

// lacks notes whose intent a record is about that has lost parts.
func (x *exporter) lacks(ctx context.Context, it *item) error {
	intent := it.Position
	if it.intent == nil {
		intent = it.target
	}
	if x.lacking[intent] != "" {
		return nil
	}
	rec := it.Record
	if intent != it.Position {
		var err error
		if rec, err = x.Records.Get(ctx, intent); err != nil {
			return err
		}
	}
	b, err := rec.Body()
	if err != nil {
		return err
	}
	x.lacking[intent] = b.Actor.Tenant + "/" + b.Actor.UserID
	return nil
}

// accounted returns an error while an intent that erased something of the bundle, or ended a plan, is
// not in it because no checkpoint covers it yet. Such a bundle would not verify.
func (x *exporter) accounted(ctx context.Context) error {
	if len(x.ended) > 0 { // by something else than plan.close: the state says where
		s := state.New()
		for rec, err := range x.Records.Scan(ctx, 0) {
			if err != nil {
				return err
			}
			if rec.Position >= x.last.Size {
				break
			}
			s.Observe(state.EntryOf(rec))
		}
		retained := s.RetainedTransient()
		for plan, at := range x.ended {
			if retained[at] {
				return fmt.Errorf("plan %s has ended, and its end is in no checkpoint yet: export again in a moment", plan)
			}
		}
	}
	for intent := range x.lacking {
		return fmt.Errorf("parts of intent %d were erased, and the erasure is in no checkpoint yet, or of no intent of this tenant: export again in a moment", intent)
	}
	return nil
}
