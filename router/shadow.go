package router

import (
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/clock"
	"aob.dev/writ/internal/durable"
	"aob.dev/writ/internal/telemetry"
	"aob.dev/writ/policies"
	"aob.dev/writ/state"
	"aob.dev/writ/storage"
)

// ShadowTerm is how long a shadow policy lasts.
const ShadowTerm = 14 * 24 * time.Hour

// Bounds of a shadow policy.
const (
	shadowQueue  = 256                   // decisions that wait for it; what comes when they are there is dropped
	shadowKept   = 1000                  // differences that are kept, the newest
	shadowGroups = 1000                  // counters of differences; the last one counts all others
	shadowRules  = 8                     // rules of a decision that are kept
	shadowBroken = 10                    // failures in a row that end it
	shadowSave   = 10 * time.Second      // between two writes
	shadowQuick  = 10 * time.Millisecond // an evaluation that takes longer is followed by a pause
	shadowAhead  = time.Minute           // how far the operator's clock may be ahead
)

// Shadow says how the decisions of a shadow policy differ from those of the policy in force.
type Shadow struct {
	Digest string    `json:"policy_digest"`
	Since  time.Time `json:"since"`
	Until  time.Time `json:"until"`
	Ended  string    `json:"ended,omitempty"` // why; empty: it is being tried

	Dropped     int64                   `json:"dropped"` // decisions, of all tenants, for which it had no time
	Tenants     map[string]ShadowCounts `json:"tenants"`
	Groups      []ShadowGroup           `json:"groups"`
	Differences []ShadowDifference      `json:"differences"` // the newest last
}

// ShadowCounts counts a tenant's decisions.
type ShadowCounts struct {
	Decided int64 `json:"decided"` // by both policies
	Differ  int64 `json:"differ"`
	Failed  int64 `json:"failed"` // the shadow took too long, failed, or reads an input that is gone
}

// ShadowGroup counts differences of one kind.
type ShadowGroup struct {
	Tenant string          `json:"tenant"`
	Type   string          `json:"type"`
	Rule   string          `json:"rule"` // that makes the difference; empty: no rule, but terms or obligations
	Before intents.Verdict `json:"before"`
	After  intents.Verdict `json:"after"`
	Count  int64           `json:"count"`
}

// ShadowDifference is an intent that the shadow decides otherwise. It has nothing of the intent's
// arguments.
type ShadowDifference struct {
	IntentID string         `json:"intent_id"`
	Tenant   string         `json:"tenant"`
	Type     string         `json:"type"`
	At       time.Time      `json:"at"`
	Before   ShadowDecision `json:"before"`
	After    ShadowDecision `json:"after"`
}

// ShadowDecision is what one of the policies decides. If both look the same, they differ in the
// values of obligations or in who may approve.
type ShadowDecision struct {
	Verdict     intents.Verdict `json:"verdict"`
	Rules       []string        `json:"rules,omitempty"`
	Obligations []string        `json:"obligations,omitempty"` // names
}

// Of is the part of one tenant.
func (s Shadow) Of(tenant string) Shadow {
	s.Tenants = map[string]ShadowCounts{tenant: s.Tenants[tenant]}
	s.Groups = slices.DeleteFunc(slices.Clone(s.Groups), func(g ShadowGroup) bool { return g.Tenant != tenant })
	s.Differences = slices.DeleteFunc(slices.Clone(s.Differences), func(d ShadowDifference) bool { return d.Tenant != tenant })
	return s
}

// Total are the counts of all tenants of the report.
func (s Shadow) Total() (sum ShadowCounts) {
	for _, c := range s.Tenants {
		sum.Decided, sum.Differ, sum.Failed = sum.Decided+c.Decided, sum.Differ+c.Differ, sum.Failed+c.Failed
	}
	return sum
}

// Newest are the last ten differences, the newest first.
func (s Shadow) Newest() []ShadowDifference {
	out := slices.Clone(s.Differences[max(0, len(s.Differences)-10):])
	slices.Reverse(out)
	return out
}

// ReadShadow reads what a router has stored of its shadow policy; nil: there was none.
func ReadShadow(ctx context.Context, store durable.Store) (s *Shadow, err error) {
	raw, err := store.Get(ctx)
	if err == nil && raw != nil {
		err = json.Unmarshal(raw, &s)
	}
	return s, err
}

// shadow tries a policy on decisions that are committed. One goroutine (WatchShadow) does it; no
// decision waits for it, and none depends on it.
type shadow struct {
	on      atomic.Bool
	queue   chan *decision
	wake    chan struct{} // the directory may have another shadow
	dropped atomic.Int64  // since the last look

	// Of Start, then of WatchShadow alone.
	row     string           // tenant data that the engine was made of
	base    *policies.Engine // and the policy that an extension tightens; nil: it is none
	engine  *policies.Engine
	engines engines
	broken  int
	saved   time.Time
	dirty   bool

	mu     sync.Mutex // guards report; held for no evaluation and no write
	report *Shadow    // nil: there was none
}

func newShadow() shadow {
	return shadow{queue: make(chan *decision, shadowQueue), wake: make(chan struct{}, 1)}
}

// Shadow reports on the shadow policy that is being tried, or on the last one; nil: there was none.
func (r *Router) Shadow(ctx context.Context) (*Shadow, error) {
	if !r.decides() && r.cfg.ShadowStore != nil { // another router tries it
		return ReadShadow(ctx, r.cfg.ShadowStore)
	}
	return r.shadow.read(), nil
}

func (s *shadow) read() *Shadow {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.report == nil {
		return nil
	}
	out := *s.report
	out.Tenants, out.Groups, out.Differences = maps.Clone(out.Tenants), slices.Clone(out.Groups), slices.Clone(out.Differences)
	out.Dropped += s.dropped.Load()
	return &out
}

// change changes the report, if there is one.
func (s *shadow) change(how func(*Shadow)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.report != nil {
		how(s.report)
		s.dirty = true
	}
}

// offer hands committed decisions of policy to the shadow. It never waits.
func (s *shadow) offer(all []*execution) {
	for _, x := range all {
		if x.env.Type() == state.TypeAdminPut {
			select {
			case s.wake <- struct{}{}:
			default:
			}
		}
		if !s.on.Load() || x.Code != intents.OK && x.Code != intents.PolicyDenied && x.Code != intents.ApprovalRequired {
			continue
		}
		select {
		case s.queue <- new(x.decision):
		default:
			s.dropped.Add(1)
		}
		if x.approval != nil && x.approval.released != nil {
			s.offer([]*execution{x.approval.released})
		}
	}
}

// openShadow reads the report, and begins or continues the trial, so that it misses no decision.
func (r *Router) openShadow(ctx context.Context) {
	if r.cfg.ShadowStore != nil {
		report, err := ReadShadow(ctx, r.cfg.ShadowStore)
		if err != nil {
			r.cfg.Log.WarnContext(ctx, "the report on the shadow policy begins anew, since it cannot be read", slog.String("error", err.Error()))
		}
		r.shadow.mu.Lock()
		r.shadow.report = report
		r.shadow.mu.Unlock()
	}
	r.lookShadow(ctx)
}

// WatchShadow tries the shadow policy that the directory has, until ctx ends. Its report is stored
// every ten seconds: a crash loses what came since. Only the router that decides runs it, after Start.
func (r *Router) WatchShadow(ctx context.Context) error {
	s := &r.shadow
	defer r.storeShadow(context.WithoutCancel(ctx))
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		for looks := false; !looks; {
			select {
			case <-ctx.Done():
				return nil
			case <-tick.C:
				looks = true
			case <-s.wake:
				looks = true
			case d := <-s.queue:
				began := time.Now()
				r.tryShadow(ctx, d)
				if took := time.Since(began); took > shadowQuick {
					_ = clock.Sleep(ctx, took) // it leaves the processor to decisions half of the time
				}
			}
		}
		r.lookShadow(ctx)
		if time.Since(s.saved) >= shadowSave {
			r.storeShadow(ctx)
		}
	}
}

func (r *Router) storeShadow(ctx context.Context) {
	s := &r.shadow
	if !s.dirty || r.cfg.ShadowStore == nil {
		return
	}
	raw, _ := json.Marshal(s.read()) // plain data
	if err := r.cfg.ShadowStore.Put(ctx, raw); err != nil {
		r.cfg.Log.WarnContext(ctx, "the report on the shadow policy is not stored", slog.String("error", err.Error()))
		return
	}
	s.saved, s.dirty = time.Now(), false
}

// lookShadow begins and ends the trial as the directory and the time have it.
func (r *Router) lookShadow(ctx context.Context) {
	s := &r.shadow
	if n := s.dropped.Swap(0); n > 0 {
		s.change(func(of *Shadow) { of.Dropped += n })
	}
	row := string(r.state.Directory().Tenant(storage.SystemTenant).PolicyData().Tenants[storage.SystemTenant][catalog.PolicyShadowKey])
	if row != s.row {
		s.row, s.base, s.engine, s.broken = row, nil, nil, 0
		s.on.Store(false)
	}
	var p catalog.PolicyShadow
	if row == "" || row == "null" || json.Unmarshal([]byte(row), &p) != nil {
		r.endShadow(ctx, "an operator ended it")
		return
	}
	report := s.read()
	begins := report == nil || report.Digest != p.Digest || !report.Since.Equal(p.Since)
	if begins {
		report = &Shadow{Digest: p.Digest, Since: p.Since, Until: p.Since.Add(ShadowTerm), Tenants: map[string]ShadowCounts{}}
	}
	var err error
	switch {
	case report.Ended != "":
		return
	case !r.cfg.Now().Before(report.Until):
		r.endShadow(ctx, "its 14 days were over")
		return
	case s.engine == nil || s.base != nil && s.base != r.cfg.Policy.Engine():
		s.engine, s.base, err = r.shadowEngine(ctx, p)
	}
	s.on.Store(err == nil)
	if begins {
		r.cfg.Log.InfoContext(ctx, "a shadow policy is tried", slog.String("digest", p.Digest), slog.Time("until", report.Until))
		s.mu.Lock()
		s.report, s.dirty = report, true
		s.mu.Unlock()
	}
	if err != nil {
		r.endShadow(ctx, "it cannot be tried: "+err.Error())
	}
}

func (r *Router) endShadow(ctx context.Context, why string) {
	r.shadow.on.Store(false)
	r.shadow.change(func(of *Shadow) {
		if of.Ended == "" {
			of.Ended = why
			r.cfg.Log.InfoContext(ctx, "the shadow policy is no longer tried", slog.String("digest", of.Digest), slog.String("why", why))
		}
	})
}

// shadowEngine compiles a shadow policy. base is the policy in force if it only tightens that.
func (r *Router) shadowEngine(ctx context.Context, p catalog.PolicyShadow) (engine, base *policies.Engine, err error) {
	tree, err := openBundle(p.Bundle, p.Digest)
	if err != nil {
		return nil, nil, err
	}
	source := tree.Source
	if policies.IsExtension(source) {
		if base, err = r.inForce(ctx); err != nil {
			return nil, nil, err
		}
		if source, err = policies.On(base.Source(), source); err != nil {
			return nil, nil, err
		}
	}
	engine, err = policies.New(source)
	return engine, base, err
}

// proveShadow compiles the shadow policy that an admin.put begins, and runs the self-proof under it:
// what can never be in force is not worth a trial.
func (r *Router) proveShadow(ctx context.Context, d *decision) error {
	if !bytes.Contains(d.env.Args(), []byte(`"`+catalog.PolicyShadowKey+`"`)) {
		return nil
	}
	a, err := argsOf[catalog.AdminPut](d.env)
	if err != nil || a.Data == nil || a.Data.Key != catalog.PolicyShadowKey {
		return err
	}
	if state.TargetTenant(d.env.Principal().Tenant, a.Tenant) != storage.SystemTenant {
		return illegal("/intent/args/data/key", "is of tenant "+storage.SystemTenant+" alone: begin a shadow with writ policy shadow DIR")
	}
	var p *catalog.PolicyShadow
	if err := json.Unmarshal(a.Data.Value, &p); err != nil {
		return illegal("/intent/args/data/value/since", "must be a time, such as "+intents.FormatTime(d.now))
	}
	if p == nil { // it ends
		return nil
	}
	if age := d.now.Sub(p.Since); age < -shadowAhead || age >= ShadowTerm {
		return illegal("/intent/args/data/value/since", "must be now: set the clock of the operator's machine, or begin the shadow anew")
	}
	engine, _, err := r.shadowEngine(ctx, *p)
	if err == nil {
		err = r.SelfProof(ctx, engine)
	}
	if err != nil {
		return illegal("/intent/args/data/value/bundle", err.Error())
	}
	return nil
}

// tryShadow has the shadow policy decide what is decided, and reports a difference.
func (r *Router) tryShadow(ctx context.Context, d *decision) {
	s := &r.shadow
	if !s.on.Load() {
		return
	}
	after, err := r.judgeShadow(ctx, d)
	if ctx.Err() != nil {
		return
	}
	tenant := d.env.Principal().Tenant
	s.change(func(of *Shadow) {
		c := of.Tenants[tenant]
		switch {
		case err != nil:
			c.Failed++
		default:
			c.Decided++
			if after.differs(d) {
				c.Differ++
				addDifference(of, after.difference(d), otherRule(after.rules, d.PolicyIDs))
			}
		}
		of.Tenants[tenant] = c
	})
	switch {
	case !errors.Is(err, errShadowBroken):
		s.broken = 0
	case s.broken+1 == shadowBroken:
		r.endShadow(ctx, fmt.Sprintf("it failed or took too long %d times in a row", shadowBroken))
	default:
		s.broken++
	}
}

// errShadowBroken: the shadow policy failed or took too long.
var errShadowBroken = errors.New("router: the shadow policy failed or took too long")

// shadowResult is what a shadow policy decides.
type shadowResult struct {
	verdict     intents.Verdict
	rules       []string
	obligations []intents.Obligation
	terms       *intents.HoldTerms
}

// judgeShadow is stage 7 under the shadow policy, on the directory of the decision. A panic is an
// error.
func (r *Router) judgeShadow(ctx context.Context, d *decision) (out shadowResult, err error) {
	defer func() {
		if p := recover(); p != nil {
			r.cfg.Log.ErrorContext(ctx, "the shadow policy panicked", slog.Any("panic", p))
			err = errShadowBroken
		}
	}()
	dir, tenant := d.view.Directory(), d.env.Principal().Tenant
	if d.policy, err = r.shadow.engines.engine(r.shadow.engine, dir, tenant); err != nil {
		return out, err
	}
	d.inputs.Data = maps.Clone(d.inputs.Data)
	for _, h := range d.inputs.Inputs {
		if _, there := d.inputs.Data[h.Pointer]; !there { // the policy in force does not read it; if it is gone, Judge says so
			_ = r.show(ctx, d, intents.Input{Pointer: h.Pointer, Ref: h.Ref, SHA256: h.SHA256, Size: h.Size})
		}
	}
	w := intents.Waiting{UnknownOutcome: slices.Contains(d.PolicyIDs, intents.RuleUnknownOutcome), Release: d.release != nil, Seen: d.seen, Requesters: func() intents.Requesters {
		if d.release != nil {
			return d.release.requesters
		}
		so := d.intent()
		return r.state.View().Requesters(&so) // the view of the decision is its own
	}}
	res, broken, err := d.policy.Judge(ctx, dir.Question(d.env, d.inputs, d.task, w))
	if broken {
		err = errShadowBroken
	}
	if err != nil {
		return out, err
	}
	out = shadowResult{verdict: res.Verdict(), rules: res.PolicyIDs(), terms: res.HoldAt(d.now)}
	if out.verdict == intents.Allow {
		out.obligations = res.Obligations
	}
	return out, nil
}

// differs reports whether a decision is another under the shadow policy.
func (s shadowResult) differs(d *decision) bool {
	return s.verdict != d.Verdict || !slices.Equal(s.rules, d.PolicyIDs) ||
		len(s.obligations)+len(d.Obligations) > 0 && !reflect.DeepEqual(s.obligations, d.Obligations) ||
		s.verdict == intents.Hold && !reflect.DeepEqual(s.terms, d.Hold)
}

// difference describes how a decision differs.
func (s shadowResult) difference(d *decision) ShadowDifference {
	return ShadowDifference{
		IntentID: d.env.ID(), Tenant: d.env.Principal().Tenant, Type: d.env.Type(), At: d.now,
		Before: shadowDecision(d.Verdict, d.PolicyIDs, d.Obligations), After: shadowDecision(s.verdict, s.rules, s.obligations),
	}
}

// addDifference adds a difference that a rule makes; empty: none does.
func addDifference(s *Shadow, x ShadowDifference, rule string) {
	if s.Differences = append(s.Differences, x); len(s.Differences) > shadowKept {
		s.Differences = slices.Delete(s.Differences, 0, len(s.Differences)-shadowKept)
	}
	g := ShadowGroup{Tenant: x.Tenant, Type: x.Type, Rule: rule, Before: x.Before.Verdict, After: x.After.Verdict}
	i := slices.IndexFunc(s.Groups, func(have ShadowGroup) bool { have.Count = 0; return have == g })
	switch {
	case i < 0 && len(s.Groups) < shadowGroups:
		i, s.Groups = len(s.Groups), append(s.Groups, g)
	case i < 0:
		i = shadowGroups - 1
		s.Groups[i] = ShadowGroup{Rule: "others", Count: s.Groups[i].Count} // of any tenant
	}
	s.Groups[i].Count++
}

func shadowDecision(verdict intents.Verdict, rules []string, obligations []intents.Obligation) ShadowDecision {
	out := ShadowDecision{Verdict: verdict, Rules: slices.Clone(rules[:min(len(rules), shadowRules)])}
	for _, o := range obligations {
		out.Obligations = append(out.Obligations, o.Name)
	}
	return out
}

// otherRule is the first rule that only one of two decisions has.
func otherRule(after, before []string) string {
	for _, id := range after {
		if !slices.Contains(before, id) {
			return id
		}
	}
	for _, id := range before {
		if !slices.Contains(after, id) {
			return id
		}
	}
	return ""
}

// shadowMetric is what the shadow policy has decided so far.
func (r *Router) shadowMetric() telemetry.Metric {
	return telemetry.Metric{
		Name: "writ_policy_shadow_decisions", Help: "Decisions that the shadow policy was tried on: the same, different, failed, or dropped because it was too slow.",
		Label: "result", Values: func() map[string]float64 {
			s := cmp.Or(r.shadow.read(), &Shadow{})
			c := s.Total()
			return map[string]float64{"same": float64(c.Decided - c.Differ), "different": float64(c.Differ), "failed": float64(c.Failed), "dropped": float64(s.Dropped)}
		},
	}
}

// openBundle reads the policy bundle of an intent, whose signature covers it.
func openBundle(bundle, digest string) (policies.Tree, error) {
	raw, err := base64.StdEncoding.Strict().DecodeString(bundle)
	if err != nil {
		return policies.Tree{}, errors.New("not base64")
	}
	tree, err := policies.ReadBundle(raw)
	if err == nil && tree.Source.Digest() != digest {
		err = errOtherDigest
	}
	return tree, err
}

// errOtherDigest: a bundle is not what its intent says.
var errOtherDigest = errors.New("the bundle has another digest")
