package audit

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"sync"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/policies"
	"aob.dev/writ/state"
	"aob.dev/writ/storage"
)

// replayer decides recorded intents again: with the catalog, the directory and
// the policy that were in force, on the inputs of the record. It carries nothing
// out and reads nothing else.
type replayer struct {
	instead *policies.Engine // in place of the policies of then
	// find looks for what decided where no blob was stored; may be nil.
	find func(digest string) ([]byte, error)

	mu       sync.Mutex // guards what follows
	blobs    map[string][]byte
	policies map[string]*policies.Engine // by digest
	engines  map[engineKey]*policies.Engine
	catalogs map[string]*catalog.Catalog
	agree    int64
	why      map[string]int64
}

type engineKey struct {
	policy string
	data   state.Tenant
}

func newReplayer(instead *policies.Engine) *replayer {
	return &replayer{instead: instead, blobs: map[string][]byte{}, policies: map[string]*policies.Engine{}, engines: map[engineKey]*policies.Engine{}, catalogs: map[string]*catalog.Catalog{}, why: map[string]int64{}}
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

// unreplayable returns why an intent cannot be decided again.
type unreplayable string

func (u unreplayable) Error() string { return string(u) }

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

// ofState are the codes of what rests on the state of plans, sessions, budgets and keys, which a
// bundle need not have all of (stages 3 and 5), and on the breakers of the router, which it has none of.
var ofState = []intents.Code{
	intents.TaskScope, intents.ConflictIdempotency, intents.InFlight, intents.KeyRevoked, intents.MalformedArgs, intents.SignatureInvalid,
	intents.SessionBusy, intents.RateLimited, intents.Overloaded, intents.DispatchUnavailable,
}

// decide passes an intent through stages 3, 6 and 7. It is an error if the decision
// differs.
func (r *replayer) decide(ctx context.Context, j *job, e *intents.Envelope) error {
	d, f := j.intent.decision, j.intent.inputs
	rows, err := r.catalog(d.Catalog)
	if err != nil {
		return err
	}
	row, known := rows.Lookup(e.Type())
	code, err := shaped(row, known, e)
	if err != nil {
		return err
	}
	if code == intents.OK && catalog.BeyondGrant(e) {
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
		roles, err = j.dir.Permits(e, row.Capability)
		if err != nil {
			code = intents.CodeOf(err)
		}
	}
	if e.Type() == state.TypeApprove && code == intents.OK && (d.Code == intents.RBACForbidden || d.Code == intents.GrantInvalid) {
		return unreplayable("refused for who may approve the held intent (" + string(d.Code) + ")")
	}
	if code != intents.OK {
		return agree(d, intents.Deny, code, nil, nil)
	}
	if d.Code != intents.RBACForbidden && !slices.Equal(f.Roles, roles) {
		return errors.New("replay: decided with other roles than grant and directory give")
	}
	if f.Skill != nil && f.Skill.Digest != "" {
		var task *state.Task
		if j.task != nil {
			task = &j.task.Task
		}
		pin, _, err := j.dir.SkillOf(task, e.Principal().Tenant, e.StringArg("skill"))
		if err != nil || *f.Skill != pin.Input() {
			return errors.New("replay: decided with another pin of the skill than the approved one")
		}
	}
	res, broken, err := r.judge(ctx, j, e, d, f)
	if err != nil {
		return err
	}
	if broken != slices.Equal(d.PolicyIDs, []string{policies.IDEngine}) {
		return unreplayable("the policy failed or took too long, then or now")
	}
	return cmp.Or(agreeOn(d, res), sameTerms(d, res.HoldAt(j.now)), j.judged())
}

// agreeOn compares the recorded decision with the policy's now.
func agreeOn(d intents.Decision, res policies.Result) error {
	code := intents.OK
	if x := res.Refusal(); x != nil {
		code = x.Code
	}
	return agree(d, res.Verdict(), code, res.PolicyIDs(), res.Obligations)
}

// judged reports whether the state of then was enough to judge a router intent.
func (j *job) judged() error {
	if j.unjudged {
		return unreplayable("state: the bundle does not show all that the intent rests on")
	}
	return nil
}

// sameTerms compares the recorded terms of a held intent with the replayed ones.
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

// patience is how often a policy that timed out is evaluated: the machine that
// replays may be busy.
const patience = 5

// judge is stage 7, with the policy of then over the directory of then.
func (r *replayer) judge(ctx context.Context, j *job, e *intents.Envelope, d intents.Decision, f intents.DecisionInputs) (res policies.Result, broken bool, err error) {
	engine, err := r.engine(d.PolicyDigest, j.dir.Tenant(e.Principal().Tenant))
	if err != nil {
		return res, false, err
	}
	res, broken, err = consistent(ctx, engine, j.question(e, d, f), sampled(j.Position))
	if errors.Is(err, policies.ErrNotKept) {
		err = unreplayable("what the intent works on is not in the record any more, and the policy reads it")
	}
	return res, broken, err
}

// consistent asks an engine. Of a sample it is an error if an evaluation afresh has another result.
func consistent(ctx context.Context, engine *policies.Engine, q intents.Question, sample bool) (res policies.Result, broken bool, err error) {
	res, broken, err = asked(ctx, engine, q)
	if err != nil || broken || !sample {
		return res, broken, err
	}
	fresh, broken, err := asked(ctx, engine.Forgetful(), q)
	if err == nil && !broken && !reflect.DeepEqual(fresh, res) {
		err = errors.New("replay: a decision that was remembered comes out otherwise now")
	}
	return res, broken, err
}

// asked has an engine judge, again if it takes too long.
func asked(ctx context.Context, engine *policies.Engine, q intents.Question) (res policies.Result, broken bool, err error) {
	for range patience {
		if res, broken, err = engine.Judge(ctx, q); !broken {
			break
		}
	}
	return res, broken, err
}

// sampled decisions, one of 64, are evaluated afresh as well, whatever is remembered: the same ones
// in every run.
func sampled(position int64) bool {
	return rand.NewPCG(sampleSeed, uint64(position)).Uint64()%64 == 0 //nolint:gosec // G115: not negative, G404: no secret
}

const sampleSeed = 1

// question is what the router asked at stage 7.
func (j *job) question(e *intents.Envelope, d intents.Decision, f intents.DecisionInputs) intents.Question {
	var t *state.Task
	if j.task != nil {
		t = &j.task.Task
	}
	return j.dir.Question(e, f, t, intents.Waiting{
		UnknownOutcome: d.Hold.AwaitsOutcome(), // checked against the state of then
		Release:        j.release != nil, Seen: j.seen, Requesters: func() intents.Requesters { return j.requestersOf(e) },
	})
}

// agree compares the recorded decision with the replayed one.
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

// engine is a policy of then over the data that a tenant had then. It remembers what it decided itself,
// by all that the policy can read, so that each distinct question is evaluated once.
func (r *replayer) engine(digest string, data state.Tenant) (*policies.Engine, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	key := engineKey{digest, data}
	if e := r.engines[key]; e != nil {
		return e, nil
	}
	policy, err := r.policy(digest)
	if err != nil {
		return nil, err
	}
	e, err := policy.WithData(data.PolicyData())
	if err != nil {
		return nil, err
	}
	if len(r.engines) >= maxEngines {
		clear(r.engines)
	}
	r.engines[key] = e
	return e, nil
}

// At most so many policies, and so many of them over the data of tenants, are retained; then all are
// made again.
const maxPolicies, maxEngines = 64, 1024

// policy is a policy of then. The lock is held.
func (r *replayer) policy(digest string) (*policies.Engine, error) {
	if e := r.policies[digest]; e != nil {
		return e, nil
	}
	e := r.instead
	if e == nil {
		source, err := r.source(digest)
		if err != nil {
			return nil, err
		}
		if e, err = policies.New(source); err != nil {
			return nil, unreplayable("the policy cannot be compiled any more")
		}
	}
	if len(r.policies) >= maxPolicies {
		clear(r.policies)
	}
	r.policies[digest] = e.WithoutDeadline()
	return r.policies[digest], nil
}

// source returns a policy's source from the blobs. The lock is held.
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

// blob returns a blob that was stored, or that find finds. The lock is held.
func (r *replayer) blob(digest string) ([]byte, bool) {
	if data, there := r.blobs[digest]; there || r.find == nil {
		return data, there
	}
	data, err := r.find(digest)
	return data, err == nil
}

// content is a blob of the bundle; storage.ErrNotFound where it has none.
func (r *replayer) content(digest string) ([]byte, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if data, there := r.blob(digest); there {
		return data, nil
	}
	return nil, storage.ErrNotFound
}

// catalog of then: our own, or one that the bundle holds.
func (r *replayer) catalog(digest string) (*catalog.Catalog, error) {
	if digest == catalog.Builtin().Digest() {
		return catalog.Builtin(), nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if c := r.catalogs[digest]; c != nil {
		return c, nil
	}
	c, err := catalog.Read(r.blobs[digest])
	if err != nil {
		return nil, unreplayable("the catalog is not in the bundle")
	}
	r.catalogs[digest] = c
	return c, nil
}

// shaped is the part of stage 3 that depends on the envelope only.
func shaped(row catalog.Row, known bool, e *intents.Envelope) (intents.Code, error) {
	if !known {
		return intents.UnknownIntent, nil
	}
	if !row.MaySign(e.Signer().Role) {
		return intents.KeyRole, nil
	}
	s, err := row.ArgsSchema()
	if err != nil {
		return "", unreplayable("a schema of the catalog cannot be compiled any more")
	}
	if len(s.Validate(e.DecodedArgs())) > 0 || e.TTL() > row.TTL() {
		return intents.SchemaInvalid, nil
	}
	return intents.OK, nil
}
