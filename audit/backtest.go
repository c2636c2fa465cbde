package audit

import (
	"cmp"
	"context"
	"errors"
	"runtime"
	"slices"
	"sync"
	"time"

	"aob.dev/writ/intents"
	"aob.dev/writ/policies"
)

// Trial selects what a new policy is tried on.
type Trial struct {
	New     *policies.Engine
	Today   *policies.Engine // nil: of every record the policy of then
	Since   time.Time        // intents from then on; zero: all
	Tenant  string           // empty: all
	Workers int              // 0: one per processor
	// Progress is called with the number of records read so far; may be nil.
	Progress func(records int64)
}

// Backtest reports what a new policy would have decided otherwise; scripts depend on
// its first members.
type Backtest struct {
	Records      int64   `json:"records"` // decisions that were tried
	Flips        []Flip  `json:"flips"`   // by position; at most maxFlips
	Unreplayable int64   `json:"unreplayable"`
	PerSecond    float64 `json:"per_second"`

	Flipped int64            `json:"flipped"` // all of them
	Groups  []FlipGroup      `json:"groups"`  // new allows first, then by count
	Why     map[string]int64 `json:"unreplayable_why,omitempty"`
	Policy  string           `json:"policy_digest"` // of the new policy
	Seconds float64          `json:"seconds"`
}

// Flip is an intent that the new policy decides otherwise.
type Flip struct {
	IntentID string          `json:"intent_id"`
	Rule     string          `json:"rule"` // that denies or holds now; where the intent is allowed now, that no longer does
	Before   intents.Verdict `json:"before"`
	After    intents.Verdict `json:"after"`
	Tenant   string          `json:"tenant"`
	Type     string          `json:"type"`
	Position int64           `json:"position"`
}

// FlipGroup counts the flips of one rule and tenant.
type FlipGroup struct {
	Rule    string          `json:"rule"`
	Tenant  string          `json:"tenant"`
	Before  intents.Verdict `json:"before"`
	After   intents.Verdict `json:"after"`
	Count   int64           `json:"count"`
	Samples []string        `json:"samples"` // intent_ids, the first ones
}

// Bounds of what is retained.
const (
	maxFlips   = 100_000
	maxSamples = 5
)

// trial decides records under two policies. Records are applied in order by one
// goroutine; signatures and policies are the workers'.
type trial struct {
	Trial
	applier *applier
	origin  string
	grants  intents.Grants
	before  *replayer // today's policy, or the policies of then
	after   *replayer

	mu     sync.Mutex // guards what follows
	out    Backtest
	groups map[flipKey]*FlipGroup
}

func newTrial(origin string, o Trial) *trial {
	if o.Workers <= 0 {
		o.Workers = runtime.GOMAXPROCS(0)
	}
	t := &trial{Trial: o, origin: origin, applier: newApplier(), before: newReplayer(o.Today), after: newReplayer(o.New), groups: map[flipKey]*FlipGroup{}}
	t.applier.origin = origin
	t.applier.inputs = newContents(func(_, digest string) ([]byte, error) { return t.before.content(digest) })
	t.out = Backtest{Flips: []Flip{}, Groups: []FlipGroup{}, Why: map[string]int64{}, Policy: o.New.Digest()}
	return t
}

// run decides batches, of which next gives one, or reports that there are no more.
func (t *trial) run(ctx context.Context, next func() (b *batch, more bool, err error)) (Backtest, error) {
	began := time.Now()
	err := stages{
		workers: t.Workers,
		next:    next,
		apply: func(b *batch) (func(), error) {
			jobs, err := t.take(b)
			return func() { t.decideAll(ctx, jobs) }, err
		},
	}.run(ctx)
	return t.finish(began), cmp.Or(err, ctx.Err())
}

// take applies items in order and picks the intents that are tried.
func (t *trial) take(b *batch) ([]*job, error) {
	var jobs []*job
	for _, p := range b.parsed {
		it := p.item
		switch {
		case p.err != nil:
			return nil, &Bad{-1, "", p.err.Error()}
		case p.Blob != nil:
			t.before.keep(p.Blob.Digest, p.Blob.Data)
			continue
		case it == nil:
			continue
		}
		j, err := t.applier.believe(it)
		if err != nil {
			return nil, err
		}
		if t.Progress != nil && it.Position%10_000 == 0 {
			t.Progress(it.Position)
		}
		if it.hidesIntent() && !it.At.Before(t.Since) {
			t.cannot("the intent is withheld: " + it.whyHidden())
			continue
		}
		if j.intent != nil && !j.At.Before(t.Since) && (t.Tenant == "" || j.intent.body.Actor.Tenant == t.Tenant) {
			jobs = append(jobs, j)
		}
	}
	return jobs, nil
}

func (t *trial) decideAll(ctx context.Context, jobs []*job) {
	for _, j := range jobs {
		flip, err := t.decide(ctx, j)
		var cannot unreplayable
		switch {
		case ctx.Err() != nil:
			return
		case errors.As(err, &cannot):
			t.cannot(string(cannot))
		case err != nil:
			t.cannot("its signature, key or grant does not hold")
		default:
			t.count(flip)
		}
	}
}

// decide tries one intent; nil: both policies decide the same.
func (t *trial) decide(ctx context.Context, j *job) (*Flip, error) {
	if !slices.Contains(byPolicy, j.intent.decision.Code) {
		return nil, nil // refused before policy was evaluated, and still
	}
	e, err := j.intent.opened.Verify(intents.Verifier{Keys: intents.KeysFunc(j.key), Origin: t.origin, Now: j.now, Grants: &t.grants})
	if err != nil {
		return nil, err
	}
	before, _, err := t.before.judge(ctx, j, e, j.intent.decision, j.intent.inputs)
	if err != nil {
		return nil, err
	}
	after, _, err := t.after.judge(ctx, j, e, j.intent.decision, j.intent.inputs)
	if err != nil {
		return nil, err
	}
	x := Flip{
		IntentID: e.ID(), Before: before.Verdict(), After: after.Verdict(),
		Tenant: e.Principal().Tenant, Type: e.Type(), Position: j.Position,
	}
	if x.Before == x.After {
		return nil, nil
	}
	if x.Rule = firstOther(after.PolicyIDs(), before.PolicyIDs()); x.After == intents.Allow {
		x.Rule = firstOther(before.PolicyIDs(), nil)
	}
	return &x, nil
}

// firstOther is the first id that is not among others, or else the first.
func firstOther(ids, others []string) string {
	for _, id := range ids {
		if !slices.Contains(others, id) {
			return id
		}
	}
	if len(ids) == 0 {
		return ""
	}
	return ids[0]
}

func (t *trial) cannot(why string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.out.Unreplayable++
	t.out.Why[why]++
}

func (t *trial) count(x *Flip) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.out.Records++
	if x == nil {
		return
	}
	t.out.Flipped++
	if len(t.out.Flips) < maxFlips {
		t.out.Flips = append(t.out.Flips, *x)
	}
	key := flipKey{x.Rule, x.Tenant, x.Before, x.After}
	g := t.groups[key]
	if g == nil {
		g = &FlipGroup{Rule: x.Rule, Tenant: x.Tenant, Before: x.Before, After: x.After}
		t.groups[key] = g
	}
	g.Count++
}

type flipKey struct {
	rule, tenant  string
	before, after intents.Verdict
}

func (t *trial) finish(began time.Time) Backtest {
	out := t.out
	out.Seconds = since(began)
	out.PerSecond = float64(out.Records) / time.Since(began).Seconds()
	slices.SortFunc(out.Flips, func(a, b Flip) int { return cmp.Compare(a.Position, b.Position) })
	for _, x := range out.Flips {
		if g := t.groups[flipKey{x.Rule, x.Tenant, x.Before, x.After}]; len(g.Samples) < maxSamples {
			g.Samples = append(g.Samples, x.IntentID)
		}
	}
	for _, g := range t.groups {
		out.Groups = append(out.Groups, *g)
	}
	slices.SortFunc(out.Groups, func(a, b FlipGroup) int {
		return cmp.Or(
			cmp.Compare(rank(a.After), rank(b.After)), cmp.Compare(b.Count, a.Count),
			cmp.Compare(a.Rule, b.Rule), cmp.Compare(a.Tenant, b.Tenant), cmp.Compare(a.After, b.After),
		)
	})
	return out
}

// rank puts newly allowed intents first.
func rank(after intents.Verdict) int {
	if after == intents.Allow {
		return 0
	}
	return 1
}
