package routertest

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"time"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/clock"
	"aob.dev/writ/router"
)

// Intent is an intent to be signed. Zero members get the usual values: user
// ana of tenant default with role user, session S and turn T, a grant of ten
// minutes and, as our submitters do, the fingerprint or a random key.
type Intent struct {
	By   intents.Signer
	Type string
	Args any
	Ctx  intents.Context

	User, Tenant string
	Roles        []string // of the grant
	Key          string   // idempotency key
	At           time.Time
	TTL          int
	Capabilities []string
	Claim        []string             // roles that the actor claims
	Audience     string               // of the intent
	Grant        func(*intents.Grant) // changes the grant before it is issued
	IssuedBy     *intents.Signer      // nil: the gateway
	NoGrant      bool
	Beside       intents.Transient // texts beside the envelope
}

// Session and turn of intents that name none.
const (
	Session = "S"
	Turn    = "T"
)

func or[T comparable](v, usual T) T {
	var zero T
	if v == zero {
		return usual
	}
	return v
}

// Sign signs an intent.
func (w *World) Sign(o Intent) []byte {
	w.Helper()
	raw, _ := w.SignID(o)
	return raw
}

// SignID signs an intent and names it.
func (w *World) SignID(o Intent) (raw []byte, id string) {
	w.Helper()
	b := w.body(o)
	raw, id, err := intents.Sign(o.By, b)
	w.Must(err)
	raw, err = o.Beside.Beside(raw)
	w.Must(err)
	return raw, id
}

func (w *World) body(o Intent) intents.Body {
	w.Helper()
	args, err := json.Marshal(o.Args)
	w.Must(err)
	in := intents.Spec{Type: o.Type, Args: args}
	operator := o.By.Role == intents.RoleOperator
	b := intents.Body{Version: intents.Version, Intent: in}
	if operator {
		b.Actor = intents.Actor{UserID: or(o.User, "local"), Tenant: or(o.Tenant, "system")}
	} else {
		o.Ctx.SessionID, o.Ctx.TurnID = or(o.Ctx.SessionID, SessionOf(o.Ctx.PlanID)), or(o.Ctx.TurnID, Turn)
		b.Actor = intents.Actor{UserID: or(o.User, "ana"), Tenant: or(o.Tenant, "default")}
		if !o.NoGrant {
			b.Actor.Grant = w.Grant(b.Actor.UserID, b.Actor.Tenant, o)
		}
	}
	b.Actor.Roles = o.Claim
	if !operator || o.Ctx.PlanID != "" || o.Ctx.Labels != nil {
		b.Context = &o.Ctx
	}
	row, known := w.Catalog.Lookup(o.Type)
	key := o.Key
	switch {
	case key != "":
	case operator:
		key = catalog.RandomKey()
	case known:
		key = row.Key(args, b.Actor.UserID, o.Ctx)
	default:
		key = intents.Fingerprint(in, b.Actor.UserID, o.Ctx)
	}
	at := o.At
	if at.IsZero() {
		at = w.Clock.Now()
	}
	b.Constraints = intents.Constraints{
		IssuedAt: intents.FormatTime(at), TTLSec: or(o.TTL, 60), Audience: or(o.Audience, w.Origin),
		IdempotencyKey: key, Capabilities: o.Capabilities,
	}
	return b
}

// usualKey is the API key through which grants are issued where their tenant has it.
const usualKey = "k1"

// SessionOf is the session of a plan: of the first ones Session, since one has one open turn.
func SessionOf(plan string) string {
	if plan == "" || plan == PlanID("p1") || plan == PlanID("plan_1") {
		return Session
	}
	return Session + "-" + plan
}

// client of usual grants: one of the tenant's keys, if it has any.
func (w *World) client(tenant string) string {
	rows, _ := w.Dir.Rows(tenant)
	for _, k := range rows.APIKeys {
		if k.ID == usualKey {
			return intents.ClientOf(usualKey)
		}
	}
	return "test"
}

// Grant issues the grant of an intent.
func (w *World) Grant(user, tenant string, o Intent) string {
	w.Helper()
	roles := o.Roles
	if roles == nil {
		roles = []string{"user"}
	}
	now := w.Clock.Now()
	g := intents.Grant{
		Issuer: w.Origin, Audience: w.Origin, Subject: user, Tenant: tenant, Roles: roles,
		Act: intents.Act{Client: w.client(tenant), AMR: []string{"key"}}, Session: or(o.Ctx.SessionID, Session), Turn: or(o.Ctx.TurnID, Turn),
		IssuedAt: now.Unix(), Expires: now.Add(10 * time.Minute).Unix(), ID: rand.Text(),
	}
	if o.Grant != nil {
		o.Grant(&g)
	}
	by := w.Gateway
	if o.IssuedBy != nil {
		by = *o.IssuedBy
	}
	token, err := intents.IssueGrant(by, g)
	w.Must(err)
	return token
}

// Do submits an intent. A refusal without a record is an answer too, without position.
func (w *World) Do(o Intent) *intents.Answer {
	w.Helper()
	return w.Send(w.Sign(o))
}

// Send submits signed bytes.
func (w *World) Send(raw []byte) *intents.Answer {
	w.Helper()
	return w.SendContext(w.Context(), raw)
}

// SendContext submits signed bytes under a context. Work that it leaves running ends with the test.
func (w *World) SendContext(ctx context.Context, raw []byte) *intents.Answer {
	ctx = clock.WithEnd(ctx, w.Context())
	a, err := w.Router.Submit(ctx, raw)
	if err != nil {
		return router.RefusalAnswer(raw, err)
	}
	return a
}

// Want stops the test unless an answer has a code.
func (w *World) Want(a *intents.Answer, code intents.Code) *intents.Answer {
	w.Helper()
	if a.Code != code {
		w.Fatalf("code %s, want %s: %s %s", a.Code, code, a.Pointer, a.Reason)
	}
	return a
}

// OK submits an intent that must be done.
func (w *World) OK(o Intent) *intents.Answer {
	w.Helper()
	return w.Want(w.Do(o), intents.OK)
}

// Result decodes the result of a done intent.
func Result[T any](w *World, a *intents.Answer) T {
	w.Helper()
	var v T
	w.Want(a, intents.OK)
	w.Must(json.Unmarshal(a.Outcome.Result, &v))
	return v
}

// Admin submits an intent of the operator local of system.
func (w *World) Admin(typ string, args any) *intents.Answer {
	w.Helper()
	return w.Do(Intent{By: w.Operator, Type: typ, Args: args})
}

// Pin approves a skill of tenant default with an effect: of a trusted server that shows what is private.
func (w *World) Pin(skill string, effect catalog.Effect) {
	w.Helper()
	w.Want(w.Admin("skill.approve", catalog.SkillApprove{Tenant: "default", Skill: skill, Digest: intents.Digest([]byte(skill)), Effect: effect, Trusted: true, OpenWorld: intents.No}), intents.OK)
}

// Data puts tenant data of default.
func (w *World) Data(key, value string) {
	w.Helper()
	w.Want(w.Admin("admin.put", catalog.AdminPut{Tenant: "default", Data: &catalog.Data{Key: key, Value: json.RawMessage(value)}}), intents.OK)
}

// Approval makes people of default approvers and puts its data approval.
func (w *World) Approval(value string, people ...string) {
	w.Helper()
	for _, user := range people {
		w.Want(w.Admin("admin.put", catalog.AdminPut{Tenant: "default", User: &catalog.User{UserID: user, Roles: []string{"approver"}}}), intents.OK)
	}
	w.Data("approval", value)
}

// Keys puts the next version of the key set in force, as changed. An answer other than
// OK leaves the world's key set as it was.
func (w *World) Keys(change func(*intents.KeySet)) *intents.Answer {
	w.Helper()
	set := intents.KeySet{Version: w.set.Version + 1, Prev: intents.Digest([]byte(w.setJWS)), Keys: append([]intents.JWK(nil), w.set.Keys...)}
	change(&set)
	token, err := intents.SignCompact(w.Root, intents.TypKeySet, set) // the router judges the set
	w.Must(err)
	a := w.Admin("key.put", catalog.KeyPut{KeySet: token})
	if a.Code == intents.OK {
		w.set, w.setJWS = set, token
	}
	return a
}

// RevokeKey puts a key set in force in which a key is revoked.
func (w *World) RevokeKey(s intents.Signer) {
	w.Helper()
	w.Want(w.Keys(func(set *intents.KeySet) {
		for i := range set.Keys {
			set.Keys[i].Revoked = set.Keys[i].Revoked || set.Keys[i].KID == s.KID
		}
	}), intents.OK)
}

// AddOperator puts a named person's operator key in force.
func (w *World) AddOperator(tenant, user string, roles ...string) intents.Signer {
	w.Helper()
	return w.addOperator(w.NewKey(intents.RoleOperator), tenant, user, roles)
}

// AddRawOperator puts one in force that makes raw signatures.
func (w *World) AddRawOperator(tenant, user string, roles ...string) intents.Signer {
	w.Helper()
	s := w.NewKey(intents.RoleOperator)
	s.Raw = true
	return w.addOperator(s, tenant, user, roles)
}

func (w *World) addOperator(s intents.Signer, tenant, user string, roles []string) intents.Signer {
	w.Helper()
	k := s.VerificationKey()
	k.Subject, k.Tenant = user, tenant
	w.Want(w.Keys(func(set *intents.KeySet) { set.Keys = append(set.Keys, k.ToJWK()) }), intents.OK)
	w.Want(w.Admin("admin.put", catalog.AdminPut{Tenant: tenant, User: &catalog.User{UserID: user, Roles: roles}}), intents.OK)
	return s
}
