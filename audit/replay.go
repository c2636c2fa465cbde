package audit

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/policies"
	"aob.dev/writ/schemas"
	"aob.dev/writ/state"
)

// replayer decides recorded orders again: with the catalog, the directory and
// the policy that were in force, on the facts of the record. It carries nothing
// out and asks nothing of the world.
type replayer struct {
	instead *policies.Engine // in place of the policies of then
	// find looks for what decided where no blob was kept; may be nil.
	find func(digest string) ([]byte, error)

	mu       sync.Mutex // guards what follows
	blobs    map[string][]byte
	engines  map[engineKey]*policies.Engine
	catalogs map[string]map[string]row
	agree    int64
	why      map[string]int64
}

type engineKey struct {
	policy string
	data   *state.Directory
}

func newReplayer(instead *policies.Engine) *replayer {
	return &replayer{instead: instead, blobs: map[string][]byte{}, engines: map[engineKey]*policies.Engine{}, catalogs: map[string]map[string]row{}, why: map[string]int64{}}
}

// keep a blob of the bundle.
func (r *replayer) keep(digest string, data []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.blobs[digest] = data
}

func (r *replayer) count() (agree int64, why map[string]int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.agree, maps.Clone(r.why)
}

// unreplayable says why an order cannot be decided again.
type unreplayable string

func (u unreplayable) Error() string { return string(u) }

// redecide is an error if the decision comes out otherwise.
func (r *replayer) redecide(ctx context.Context, j *job, e *intents.Envelope) error {
	return r.tally(r.decide(ctx, j, e))
}

// tally counts what came of deciding again.
func (r *replayer) tally(err error) error {
	var cannot unreplayable
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case err == nil:
		r.agree++
	case errors.As(err, &cannot):
		r.why[string(cannot)]++
		return nil
	}
	return err
}

// ofState are the codes of what rests on the state of plans and keys, which a
// bundle need not have all of (stages 3 and 5).
var ofState = []intents.Code{intents.TaskScope, intents.ConflictIdempotency, intents.InFlight, intents.KeyRevoked, intents.MalformedArgs, intents.SignatureInvalid}

// decide takes an order through stages 3, 6 and 7.
func (r *replayer) decide(ctx context.Context, j *job, e *intents.Envelope) error {
	d, f := j.order.decision, j.order.facts
	rows, err := r.catalog(d.Catalog)
	if err != nil {
		return err
	}
	row, known := rows[e.Type()]
	code, err := row.judge(e, known)
	if err != nil {
		return err
	}
	if code == intents.OK && j.rules >= intents.RulesStrict && catalog.BeyondGrant(e) {
		code = intents.TaskScope
	}
	if j.refusal == d.Code && code == intents.OK && slices.Contains(ofState, d.Code) {
		return agree(d, intents.Deny, j.refusal, nil, nil)
	}
	if slices.Contains(ofState, d.Code) && (code == intents.OK || code == intents.SchemaInvalid) {
		return unreplayable("refused for the state that plans or keys were in (" + string(d.Code) + ")")
	}
	var roles []string
	if code == intents.OK {
		roles, err = j.dir.Permits(j.rules, e, row.Capability, false)
		if err != nil {
			code = intents.CodeOf(err)
		}
	}
	if e.Type() == state.TypeApprove && code == intents.OK && (d.Code == intents.RBACForbidden || d.Code == intents.GrantInvalid) {
		return unreplayable("refused for who may approve the held order (" + string(d.Code) + ")")
	}
	if code != intents.OK {
		return agree(d, intents.Deny, code, nil, nil)
	}
	if d.Code != intents.RBACForbidden && j.rules >= intents.RulesStrict && !slices.Equal(f.Roles, roles) {
		return errors.New("replay: decided with other roles than grant and directory give")
	}
	if f.Skill != nil && f.Skill.Digest != "" {
		pin, _ := j.dir.Pin(e.Principal().Tenant, f.Skill.Name)
		if pin.Digest != f.Skill.Digest || pin.Effect != f.Skill.Effect {
			return errors.New("replay: decided with another pin of the skill than the approved one")
		}
	}
	engine, err := r.engine(ctx, d.PolicyDigest, j.dir)
	if err != nil {
		return err
	}
	res, err := ask(ctx, engine, e, f)
	if err != nil {
		return err
	}
	if ids := []string{policies.IDEngine}; slices.Equal(d.PolicyIDs, ids) != slices.Equal(res.PolicyIDs(), ids) {
		return unreplayable("the policy failed or took too long, then or now")
	}
	if e.Type() == state.TypeApprove {
		res = res.Unheld()
	}
	if res.Outlasts(e.TTL()) {
		return agree(d, intents.Deny, intents.PolicyDenied, nil, nil)
	}
	code = intents.OK
	if x := res.Refusal(); x != nil {
		code = x.Code
	}
	if err := agree(d, res.Verdict(), code, res.PolicyIDs(), res.Obligations); err != nil {
		return err
	}
	if err := sameTerms(d, res.HoldAt(j.now)); err != nil {
		return err
	}
	return j.judged()
}

// judged says whether the state of then was enough to judge an order of the router.
func (j *job) judged() error {
	if j.unjudged {
		return unreplayable("state: the bundle does not show all that the order rests on")
	}
	return nil
}

// sameTerms compares what a held order waits for with what comes out.
func sameTerms(d intents.Decision, comes *intents.HoldTerms) error {
	if d.Verdict != intents.Hold {
		return nil
	}
	was, err1 := json.Marshal(d.Hold)
	is, err2 := json.Marshal(comes)
	if err1 != nil || err2 != nil || string(was) != string(is) {
		return errors.New("replay: held on other terms than come out")
	}
	return nil
}

// patience is how often a policy is asked that took too long: the machine that
// replays may be a busy one.
const patience = 5

func ask(ctx context.Context, engine *policies.Engine, e *intents.Envelope, f intents.Facts) (res policies.Result, err error) {
	for range patience {
		if res, err = engine.DecideOrder(ctx, e, f); err != nil || !slices.Equal(res.PolicyIDs(), []string{policies.IDEngine}) {
			break
		}
	}
	return res, err
}

// agree compares what was decided with what comes out.
func agree(d intents.Decision, verdict intents.Verdict, code intents.Code, ids []string, duties []intents.Obligation) error {
	was, err1 := json.Marshal(d.Obligations)
	is, err2 := json.Marshal(duties)
	switch {
	case d.Verdict != verdict || d.Code != code:
		return fmt.Errorf("replay: decided %s (%s), and comes out %s (%s)", d.Verdict, d.Code, verdict, code)
	case !slices.Equal(d.PolicyIDs, ids):
		return fmt.Errorf("replay: decided by rules %v, and comes out by %v", d.PolicyIDs, ids)
	case err1 != nil || err2 != nil || verdict == intents.Allow && len(d.Obligations)+len(duties) > 0 && string(was) != string(is):
		return errors.New("replay: decided with other obligations than come out")
	default:
		return nil
	}
}

// engine is a policy of then over the directory of then. It remembers nothing:
// what a router remembered wrongly would only be remembered again.
func (r *replayer) engine(ctx context.Context, digest string, data *state.Directory) (*policies.Engine, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	key := engineKey{digest, data}
	if e := r.engines[key]; e != nil {
		return e, nil
	}
	base := r.instead
	if base == nil {
		source, err := r.source(digest)
		if err != nil {
			return nil, err
		}
		for k, e := range r.engines { // compiled before, over other data
			if k.policy == digest {
				base = e
				break
			}
		}
		if base == nil {
			if base, err = policies.New(ctx, source); err != nil {
				return nil, unreplayable("the policy cannot be compiled any more")
			}
		}
	}
	e, err := base.Unhurried().Forgetful().WithData(ctx, policies.Data(data.PolicyData()))
	if err != nil {
		return nil, err
	}
	if len(r.engines) >= maxEngines {
		clear(r.engines)
	}
	r.engines[key] = e
	return e, nil
}

// maxEngines are kept; then all are made again.
const maxEngines = 64

// source of a policy, from the blobs. The lock is held.
func (r *replayer) source(digest string) (policies.Source, error) {
	var manifest map[string]string
	doc, there := r.blob(digest)
	if !there || json.Unmarshal(doc, &manifest) != nil {
		return nil, unreplayable("the policy is not in the bundle")
	}
	s := policies.Source{}
	for name, file := range manifest {
		content, there := r.blob(file)
		if !there {
			return nil, unreplayable("a file of the policy is not in the bundle")
		}
		s[name] = content
	}
	return s, nil
}

// blob that was kept, or that find finds. The lock is held.
func (r *replayer) blob(digest string) ([]byte, bool) {
	if data, there := r.blobs[digest]; there || r.find == nil {
		return data, there
	}
	data, err := r.find(digest)
	return data, err == nil
}

// row of a catalog of then.
type row struct {
	Type       string         `json:"type"`
	Capability string         `json:"capability"`
	Signers    []intents.Role `json:"signed_by"`
	Executor   string         `json:"executor"`
	TTLSec     int            `json:"ttl_sec"`
	args       func() (*schemas.Schema, error)
}

// catalog of then: our own, or one that the bundle holds.
func (r *replayer) catalog(digest string) (map[string]row, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if rows := r.catalogs[digest]; rows != nil {
		return rows, nil
	}
	rows := map[string]row{}
	if digest == catalog.Builtin().Digest() {
		for _, own := range catalog.Builtin().Rows() {
			rows[own.Type] = row{
				Type: own.Type, Capability: own.Capability, Signers: own.Signers, Executor: own.Executor,
				TTLSec: int(own.TTL().Seconds()), args: own.ArgsSchema,
			}
		}
		r.catalogs[digest] = rows
		return rows, nil
	}
	var doc struct {
		Intents []struct {
			row
			Args json.RawMessage `json:"args_schema"`
		} `json:"intents"`
	}
	if raw, there := r.blobs[digest]; !there || json.Unmarshal(raw, &doc) != nil {
		return nil, unreplayable("the catalog is not in the bundle")
	}
	for _, x := range doc.Intents {
		x.args = sync.OnceValues(func() (*schemas.Schema, error) { return schemas.Compile(x.Args) })
		if own, known := catalog.Builtin().Lookup(x.Type); known && sameArgs(own, x.Args) {
			x.args = own.ArgsSchema // ours may refer to documents that the bundle does not hold
		}
		rows[x.Type] = x.row
	}
	r.catalogs[digest] = rows
	return rows, nil
}

// sameArgs: the arguments of then have the schema of today.
func sameArgs(own catalog.Row, then json.RawMessage) bool {
	s, err := own.ArgsSchema()
	if err != nil {
		return false
	}
	a, err1 := intents.Canonical(s.Source())
	b, err2 := intents.Canonical(then)
	return err1 == nil && err2 == nil && bytes.Equal(a, b)
}

// judge is what of stage 3 the order alone decides.
func (w row) judge(e *intents.Envelope, known bool) (intents.Code, error) {
	if !known {
		return intents.UnknownIntent, nil
	}
	if !slices.Contains(w.Signers, e.Signer().Role) {
		return intents.KeyRole, nil
	}
	s, err := w.args()
	if err != nil {
		return "", unreplayable("a schema of the catalog cannot be compiled any more")
	}
	if len(s.Validate(e.Decoded())) > 0 || int(e.TTL().Seconds()) > w.TTLSec {
		return intents.SchemaInvalid, nil
	}
	return intents.OK, nil
}
