package router

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/policies"
	"aob.dev/writ/state"
	"aob.dev/writ/storage"
)

// SelfProof shows that this router, with the real catalog and the given policy, still refuses a bad
// signature, an expired intent and a forbidden one, each with its exact code, and accepts one good
// intent. It runs Decide over a temporary directory in memory, with keys, tenant and grant of its
// own; it writes nothing. It runs before the router is ready and before every policy swap.
//
// A policy that names a type which is no intent is refused: its rule would decide nothing. What
// people read is no intent, and policies are not asked about it.
func (r *Router) SelfProof(ctx context.Context, engine *policies.Engine) error {
	if err := r.knowsTypes(engine); err != nil {
		return err
	}
	p, err := newProof(r, engine)
	if err != nil {
		return fmt.Errorf("self-proof: %w", err)
	}
	for _, c := range []struct {
		name   string
		issued time.Time
		labels map[string]string
		spoilt bool
		want   intents.Code
	}{
		{"a good intent", p.now, nil, false, intents.OK},
		{"a bad signature", p.now, nil, true, intents.SignatureInvalid},
		{"an expired intent", p.now.Add(-time.Hour), nil, false, intents.ExpiredTTL},
		{"a forbidden intent", p.now, map[string]string{ForbiddenLabel: forbidden}, false, intents.PolicyDenied},
	} {
		raw, err := p.sign(c.issued, c.labels)
		if err != nil {
			return fmt.Errorf("self-proof: %w", err)
		}
		if c.spoilt { // one byte of the signed content
			raw = bytes.Replace(raw, []byte(query), []byte("S"+query[1:]), 1)
		}
		got, _ := p.router.Decide(ctx, raw)
		for again := 0; got != c.want && c.want == intents.OK && again < proofPatience; again++ {
			got, _ = p.router.Decide(ctx, raw)
		}
		if got != c.want {
			return fmt.Errorf("self-proof: %s gives %s, must be %s: the router refuses to be ready", c.name, got, c.want)
		}
	}
	return nil
}

// knowsTypes refuses a policy that compares the type of an intent with what is none. A vendor's type
// may come later.
func (r *Router) knowsTypes(engine *policies.Engine) error {
	types := cmp.Or(r.cfg.Catalog, catalog.Builtin())
	for _, n := range engine.Names() {
		if _, known := types.Lookup(n.Name); n.Kind == policies.NameType && !known && !strings.HasPrefix(n.Name, "x.") {
			return fmt.Errorf("%s names %q, which is no intent type: GET /v1/catalog lists them", n.Where(), n.Name)
		}
	}
	return nil
}

// Prove is SelfProof without a router. It tells whether a router would be ready.
func Prove(ctx context.Context, engine *policies.Engine, now func() time.Time) error {
	return (&Router{cfg: Config{Now: now, Log: slog.New(slog.DiscardHandler)}}).SelfProof(ctx, engine)
}

// ForbiddenLabel marks an intent that every policy tree must deny (policies/writ, rule
// writ.selfproof.forbidden).
const (
	ForbiddenLabel = "writ.selfproof"
	forbidden      = "forbidden"
)

// proofPatience is how often a good intent is tried again: on a busy machine a policy may be denied
// for its time. Intents that must be refused are tried once.
const proofPatience = 4

// query of the intents that the proof makes.
const query = "self-proof"

// proof is a temporary world to decide in.
type proof struct {
	router  *Router
	planner intents.Signer
	grant   string
	origin  string
	now     time.Time
}

func newProof(r *Router, engine *policies.Engine) (*proof, error) {
	now := r.cfg.Now().UTC()
	root, err := intents.GenerateSigner(intents.RoleRoot)
	if err != nil {
		return nil, err
	}
	set := intents.KeySet{Version: 1}
	signers := map[intents.Role]intents.Signer{}
	for _, role := range []intents.Role{intents.RoleGateway, intents.RolePlanner} {
		s, err := intents.GenerateSigner(role)
		if err != nil {
			return nil, err
		}
		signers[role] = s
		set.Keys = append(set.Keys, s.VerificationKey().ToJWK())
	}
	token, err := state.NewGenesis(root, set, engine.Digest(), r.cfg.Catalog)
	if err != nil {
		return nil, err
	}
	fresh := state.New()
	rec, err := storage.RecordOf(storage.KindControl, now, state.Control{Genesis: &token, Rules: state.Rules})
	if err != nil {
		return nil, err
	}
	fresh.Observe(storage.Entry{
		Record: rec,
		Writes: []storage.Subject{state.SubjectKeys, state.SubjectPolicy, state.SubjectTenant("default")}, Target: storage.NoPosition,
	})
	if err := fresh.Err(); err != nil {
		return nil, err
	}
	origin := fresh.Origin()
	grant, err := intents.IssueGrant(signers[intents.RoleGateway], intents.Grant{
		Issuer: origin, Audience: origin, Subject: "selfproof",
		Tenant: "default", Roles: []string{"user"}, Act: intents.Act{Client: "selfproof", AMR: []string{"none"}},
		Session: "selfproof", Turn: "selfproof", IssuedAt: now.Unix(), Expires: now.Add(time.Minute).Unix(), ID: "selfproof",
	})
	if err != nil {
		return nil, err
	}
	own := r.cfg
	own.State, own.Journal, own.Policy, own.Term = fresh, emptyJournal{}, policies.NewLive(engine), nil
	world := &Router{cfg: own, state: fresh, keys: storage.NewIntentKeys(own.KeySecret)}
	return &proof{router: world, planner: signers[intents.RolePlanner], grant: grant, origin: origin, now: now}, nil
}

func (p *proof) sign(at time.Time, labels map[string]string) ([]byte, error) {
	args, err := json.Marshal(catalog.SkillFind{Query: query})
	if err != nil {
		return nil, err
	}
	in := intents.Spec{Type: "skill.find", Args: args}
	ctx := intents.Context{SessionID: "selfproof", TurnID: "selfproof", Labels: labels}
	raw, _, err := intents.Sign(p.planner, intents.Body{
		Version: intents.Version, Intent: in,
		Actor: intents.Actor{UserID: "selfproof", Tenant: "default", Grant: p.grant},
		Constraints: intents.Constraints{
			IssuedAt: intents.FormatTime(at), TTLSec: 60, Audience: p.origin,
			IdempotencyKey: intents.Fingerprint(in, "selfproof", ctx),
		},
		Context: &ctx,
	})
	return raw, err
}

// emptyJournal is a journal in which no key is held and nothing can be written.
type emptyJournal struct{ storage.Journal }

func (emptyJournal) Lookup(context.Context, storage.Key) (storage.Holder, bool, error) {
	return storage.Holder{}, false, nil
}
