package router_test

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"maps"
	"strings"
	"sync"
	"testing"
	"time"

	"aob.dev/writ/intents"
	"aob.dev/writ/internal/health"
	"aob.dev/writ/internal/testing/routertest"
	"aob.dev/writ/policies"
	"aob.dev/writ/router"
	"aob.dev/writ/state"
	"aob.dev/writ/storage"
)

func TestStartWithoutGenesis(t *testing.T) {
	w := routertest.NewEmpty(t, routertest.Options{})
	if err := w.Router.Start(t.Context()); err == nil || w.Router.Ready() {
		t.Errorf("%v, ready %v", err, w.Router.Ready())
	}
	a, err := w.Router.SubmitAndWait(t.Context(), w.Sign(find(w)), 0)
	if a != nil || intents.CodeOf(err) != intents.Overloaded {
		t.Errorf("%+v, %v", a, err)
	}
}

// A start refuses nothing for the clock: later records get at least the time of the last record.
func TestStartWithTheClockBack(t *testing.T) {
	w := routertest.New(t, routertest.Options{})
	w.OK(find(w))
	last := w.Dir.LastAt()
	w.Clock.Move(-time.Hour)
	next := w.Reopen()
	next.Start()
	next.OK(find(next))
	if recs := next.Records(); !recs[len(recs)-1].At.Equal(last) {
		t.Errorf("the last record is timed %v, not %v", recs[len(recs)-1].At, last)
	}
}

// The refusal while intents are blocked has a hint, and no hold expires by a clock that may be
// wrong.
func TestBlocked(t *testing.T) {
	blocked := health.Condition{Name: "clock", Reason: "the clock was set", Do: "writ admin confirm clock", Blocks: true}
	up := false
	w := routertest.New(t, routertest.Options{Blocked: func() (health.Condition, bool) { return blocked, up }})
	w.Start()
	if up = true; w.Router.Ready() {
		t.Error("ready")
	}
	_, err := w.Router.SubmitAndWait(t.Context(), w.Sign(find(w)), 0)
	a := router.RefusalAnswer(nil, err)
	if a.Code != intents.Overloaded || !strings.Contains(a.Reason, blocked.Reason) || a.Hint != blocked.Do || a.RetryAfter == 0 {
		t.Errorf("%+v", a)
	}
	if up = false; !w.Router.Ready() {
		t.Error("not ready after it")
	}
}

// changed are the embedded policies with one module replaced.
func changed(t *testing.T, name, content string) *policies.Engine {
	t.Helper()
	source := maps.Clone(policies.Embedded())
	if _, ok := source[name]; !ok {
		t.Fatalf("no module %s", name)
	}
	source[name] = []byte(content)
	e, err := policies.New(source)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// The router proves itself with the policy in force: one that allows the forbidden intent, or
// denies the good one, keeps it from being ready.
func TestSelfProof(t *testing.T) {
	w := routertest.New(t, routertest.Options{})
	before := w.Journal.Next()
	w.Must(w.Router.SelfProof(t.Context(), w.Policy.Engine()))
	for name, c := range map[string]struct {
		engine *policies.Engine
		want   string
	}{
		"allows the forbidden": {changed(t, "authz/selfproof.rego", "package writ.authz\n"), "a forbidden intent"},
		"denies all":           {changed(t, "authz/authz.rego", strings.Replace(string(policies.Embedded()["authz/authz.rego"]), `input.actor.tenant != ""`, `input.actor.tenant == ""`, 1)), "a good intent"},
	} {
		err := w.Router.SelfProof(t.Context(), c.engine)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if w.Journal.Next() != before {
		t.Error("the proof left records")
	}
}

func TestStartWithAPolicyThatFailsTheProof(t *testing.T) {
	w := routertest.New(t, routertest.Options{})
	next := w.Reopen()
	r, err := router.New(router.Config{
		Journal: next.Journal, Records: next.Journal, State: next.Dir, Bus: next.Bus, Key: next.Signer, KeySecret: routertest.KeySecret,
		Policy: policies.NewLive(changed(t, "authz/selfproof.rego", "package writ.authz\n")), Now: next.Clock.Now,
	})
	w.Must(err)
	if err := r.Start(t.Context()); err == nil || r.Ready() {
		t.Errorf("%v, ready %v", err, r.Ready())
	}
}

// The record has a policy in force before the first decision by it, whoever is faster: the one who
// put it in force or an intent.
func TestPolicyIsRecordedBeforeItDecides(t *testing.T) {
	w := routertest.New(t, routertest.Options{})
	engine := changed(t, "authz/steps.rego", "package writ.authz\n")
	_, err := w.Policy.ReplaceTree(w.Context(), policies.Tree{Source: engine.Source()}, w.Router.SelfProof)
	w.Must(err)
	before := w.Journal.Next()
	raw := w.Sign(find(w))
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			if _, err := w.Router.DryRun(w.Context(), raw); err == nil {
				t.Error("a user may not dry-run")
			}
		})
	}
	all.Wait()
	if made := w.Journal.Next() - before; made != 0 {
		t.Errorf("a dry run leaves %d records", made)
	}
	for range 4 {
		all.Go(func() { w.Want(w.Do(find(w)), intents.OK) })
	}
	all.Wait()
	rec, err := w.Journal.Get(w.Context(), before)
	w.Must(err)
	var c state.Control
	w.Must(json.Unmarshal(rec.Parts[storage.PartControl], &c))
	if made := w.Journal.Next() - before; made != 1+4*2 || c.Policy != engine.Digest() {
		t.Errorf("%d records, the first puts %s in force", made, c.Policy)
	}
}

// A changed policy is recorded at the start, once; decisions name it.
func TestStartRecordsThePolicy(t *testing.T) {
	w := routertest.New(t, routertest.Options{})
	next := w.Reopen()
	engine := changed(t, "authz/steps.rego", "package writ.authz\n")
	next.Policy = policies.NewLive(engine)
	r, err := router.New(router.Config{
		Journal: next.Journal, Records: next.Journal, State: next.Dir, Bus: next.Bus, Key: next.Signer, KeySecret: routertest.KeySecret,
		Policy: next.Policy, Now: next.Clock.Now,
	})
	w.Must(err)
	before := next.Journal.Next()
	w.Must(r.Start(t.Context()))
	w.Must(r.PolicyChanged(t.Context()))
	if made := next.Journal.Next() - before; made != 1 || next.Dir.View().PolicyDigest() != engine.Digest() {
		t.Errorf("%d records, digest in force %s", made, next.Dir.View().PolicyDigest())
	}
	a, err := r.Submit(t.Context(), next.Sign(find(next)))
	w.Must(err)
	if a.Decision.PolicyDigest != engine.Digest() {
		t.Errorf("decided by %s", a.Decision.PolicyDigest)
	}
}

func TestNewNeedsKeyAndSecret(t *testing.T) {
	w := routertest.New(t, routertest.Options{})
	if _, err := router.New(router.Config{Key: w.Manager, State: state.New(), KeySecret: routertest.KeySecret}); err == nil {
		t.Error("a manager's key makes a router")
	}
	if _, err := router.New(router.Config{Key: w.Signer, State: state.New()}); err == nil || !strings.Contains(err.Error(), "secret of idempotency keys") {
		t.Errorf("without a secret: %v", err)
	}
}

// TestStartRefusesAnotherSecret: under it, a router would carry out again what was accepted. Erased and
// refused intents prove no secret.
func TestStartRefusesAnotherSecret(t *testing.T) {
	w := routertest.New(t, routertest.Options{})
	start := func(secret byte) error {
		next := w.Reopen()
		r, err := router.New(router.Config{
			Journal: next.Journal, Records: next.Journal, State: next.Dir, Bus: next.Bus, Key: next.Signer, KeySecret: bytes.Repeat([]byte{secret}, 32),
			Policy: next.Policy, Now: next.Clock.Now, Log: slog.New(slog.DiscardHandler),
		})
		w.Must(err)
		return r.Start(t.Context())
	}
	w.OK(find(w))
	erased := w.OK(find(w))
	o := find(w)
	o.Roles = []string{"auditor"}
	w.Want(w.Do(o), intents.RBACForbidden)
	j, ok := w.Journal.(storage.Eraser)
	if !ok {
		t.Fatal("the journal erases nothing")
	}
	w.Must(j.Erase(t.Context(), *erased.Position))
	if err := start(8); err == nil || !strings.Contains(err.Error(), "keys/tags") {
		t.Errorf("another secret: %v", err)
	}
	w.Must(start(routertest.KeySecret[0]))
}
