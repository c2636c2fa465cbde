package main

import (
	"cmp"
	"crypto/rand"
	"encoding/json"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/keydir"
)

// Session and turn of all intents of a script.
const (
	sessionID = "sess_script"
	turnID    = "turn_script"
)

// task is what step opened.
type task struct {
	key  intents.Signer
	id   string
	plan string
}

// keys are the private keys of the data directory, which allow signing.
func (w *world) keys(ts *testscript.TestScript) keydir.Keys {
	return must[keydir.Keys](ts)(keydir.Load(w.data + "/keys"))
}

func (w *world) origin(ts *testscript.TestScript) string {
	return "writ/" + w.keys(ts)[intents.RoleRoot].KID
}

type grantFor struct {
	user, tenant string
	roles        []string
	at           time.Time
	by           intents.Role
	session      string // empty: that of intents of no plan
}

func (w *world) grant(ts *testscript.TestScript, g grantFor) string {
	if g.by == "" {
		g.by = intents.RoleGateway
	}
	origin := w.origin(ts)
	return must[string](ts)(intents.IssueGrant(w.keys(ts)[g.by], intents.Grant{
		Issuer: origin, Audience: origin, Subject: g.user, Tenant: g.tenant,
		Roles: g.roles, Act: intents.Act{Client: "key:local", AMR: []string{"api_key"}}, Session: cmp.Or(g.session, sessionID), Turn: turnID,
		IssuedAt: g.at.Unix(), Expires: g.at.Add(intents.MaxGrantLife).Unix(), ID: "grant_" + rand.Text(),
	}))
}

// intent is what sign makes, member by member.
type intent struct {
	role                  intents.Role
	typ, args             string
	user, tenant, claimed string // claimed: the tenant of the actor, if it is not the grant's
	roles                 []string
	issued                time.Duration // from now
	key, label            string
	grantBy               intents.Role
	stranger              bool // signed by a key that nobody knows
	plan                  string
}

// sign writes an intent to a file:
//
//	sign FILE ROLE TYPE ARGS|@FILE [user=U] [tenant=T] [claimed=T] [roles=a,b] [issued=-10m] [key=K] [label=L] [granted-by=ROLE] [plan=P] [stranger=1]
//
// A task's intent is signed by the key of the task that step opened.
func sign(ts *testscript.TestScript, w *world, args []string) {
	want(ts, args, 4, "sign FILE ROLE TYPE ARGS [NAME=VALUE…]")
	o := intent{role: intents.Role(args[1]), typ: args[2], args: args[3], user: "ana", tenant: "default", roles: []string{"user", "auditor"}}
	if from, ok := strings.CutPrefix(o.args, "@"); ok {
		o.args = ts.ReadFile(from)
	}
	for _, a := range args[4:] {
		name, value, _ := strings.Cut(a, "=")
		switch name {
		case "user":
			o.user = value
		case "tenant":
			o.tenant = value
		case "claimed":
			o.claimed = value
		case "roles":
			o.roles = strings.Split(value, ",")
		case "issued":
			o.issued = must[time.Duration](ts)(time.ParseDuration(value))
		case "key":
			o.key = value
		case "label":
			o.label = value
		case "granted-by":
			o.grantBy = intents.Role(value)
		case "plan":
			o.plan = value
		case "stranger":
			o.stranger = must[bool](ts)(strconv.ParseBool(value))
		default:
			ts.Fatalf("sign does not know %s", name)
		}
	}
	signed, _ := w.sign(ts, o)
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), signed, 0o600))
}

func (w *world) sign(ts *testscript.TestScript, o intent) (signed []byte, id string) {
	now := time.Now()
	signer := w.keys(ts)[o.role]
	c := intents.Context{TurnID: turnID, PlanID: o.plan}
	if o.role == intents.RoleTask {
		if w.task == nil {
			ts.Fatalf("no task: open one with step")
		}
		signer = w.task.key
		c.PlanID, c.Revision, c.Step, c.TaskID = w.task.plan, 1, 1, w.task.id
	}
	if o.stranger {
		signer = must[intents.Signer](ts)(intents.GenerateSigner(o.role))
	}
	c.SessionID = sessionID
	if c.PlanID != "" { // one session has one open turn
		c.SessionID += "_" + c.PlanID
	}
	if o.key == "" {
		o.key = "rnd_" + rand.Text()
	}
	if o.label != "" {
		name, value, _ := strings.Cut(o.label, ":")
		c.Labels = map[string]string{name: value}
	}
	actor := intents.Actor{UserID: o.user, Tenant: o.tenant, Grant: w.grant(ts, grantFor{user: o.user, tenant: o.tenant, roles: o.roles, at: now, by: o.grantBy, session: c.SessionID})}
	if o.claimed != "" {
		actor.Tenant = o.claimed
	}
	signed, id, err := intents.Sign(signer, intents.Body{
		Version: intents.Version, Intent: intents.Spec{Type: o.typ, Args: json.RawMessage(o.args)}, Actor: actor,
		Constraints: intents.Constraints{IssuedAt: intents.FormatTime(now.Add(o.issued)), TTLSec: 120, Audience: w.origin(ts), IdempotencyKey: o.key}, Context: &c,
	})
	ts.Check(err)
	return signed, id
}

// openStep, as "step PLAN SKILL…", makes a plan of one step with these skills,
// and the step's task, as gateway, manager and planner would.
func openStep(ts *testscript.TestScript, w *world, args []string) {
	want(ts, args, 2, "step PLAN SKILL…")
	plan := args[0]
	do := func(role intents.Role, typ string, a any) string {
		raw := must[[]byte](ts)(json.Marshal(a))
		signed, id := w.sign(ts, intent{role: role, typ: typ, args: string(raw), user: "ana", tenant: "default", roles: []string{"user"}, plan: plan})
		if status, _, body := request(ts, w, "POST", "/v1/intents", nil, signed); status != 200 {
			ts.Fatalf("%s: HTTP %d %s", typ, status, body)
		}
		return id
	}
	do(intents.RoleGateway, "plan.open", catalog.PlanOpen{PlanID: plan, Task: "a script's"})
	do(intents.RoleManager, "plan.claim", catalog.PlanClaim{PlanID: plan, Epoch: 1, Driver: "driver_script"})
	digest := do(intents.RolePlanner, "plan", catalog.Plan{PlanID: plan, Epoch: 1, Revision: 1, Steps: []catalog.PlanStep{
		{Step: 1, Task: "call it", Skills: args[1:], ReturnSpec: catalog.ReturnSpec{Shape: "array<string>", Reason: "a script's"}},
	}})
	w.task = &task{id: intents.NewTimedID(intents.KindTask, time.Now()), plan: plan, key: must[intents.Signer](ts)(intents.GenerateSigner(intents.RoleTask))}
	a := catalog.Step{
		PlanID: plan, PlanDigest: digest, Step: 1, Epoch: 1, TaskID: w.task.id, JWK: w.task.key.VerificationKey().ToJWK(),
		Deadline: time.Now().Add(10 * time.Minute).UTC().Format(time.RFC3339),
	}
	a.JWK.Role = ""
	a.PoP = must[string](ts)(intents.SignPoP(w.task.key, a))
	do(intents.RoleManager, "step", a)
	ts.Setenv("TASK", w.task.id)
}

// spoil copies a file with one byte changed: spoil FROM TO OLD NEW, where OLD
// and NEW differ in one byte and OLD is there once.
func spoil(ts *testscript.TestScript, _ *world, args []string) {
	want(ts, args, 4, "spoil FROM TO OLD NEW")
	from, was, is := ts.ReadFile(args[0]), args[2], args[3]
	differ := 0
	for i := range min(len(was), len(is)) {
		if was[i] != is[i] {
			differ++
		}
	}
	if len(was) != len(is) || differ != 1 || strings.Count(from, was) != 1 {
		ts.Fatalf("that is not one byte, or %q is not there once", was)
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[1]), []byte(strings.Replace(from, was, is, 1)), 0o600))
}

// large writes a plan.open whose task has so many bytes; it is not even signed,
// since no router reads so far: large FILE BYTES.
func large(ts *testscript.TestScript, _ *world, args []string) {
	want(ts, args, 2, "large FILE BYTES")
	n := must[int](ts)(strconv.Atoi(args[1]))
	raw := must[[]byte](ts)(json.Marshal(catalog.PlanOpen{PlanID: "plan_bad", Task: strings.Repeat("x", n)}))
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(`{"version":"1.0","intent":{"type":"plan.open","args":`+string(raw)+`}}`), 0o600))
}

// planOf are the arguments of a first revision of n steps of a plan.
func planOf(id string, n int) string {
	p := catalog.Plan{PlanID: id, Epoch: 1, Revision: 1}
	for i := range n {
		p.Steps = append(p.Steps, catalog.PlanStep{Step: i + 1, Task: "one more", Skills: []string{"rank"}, ReturnSpec: catalog.ReturnSpec{Shape: "array<string>", Reason: "a script's"}})
	}
	raw, err := json.Marshal(p)
	if err != nil {
		panic(err) // strings and numbers
	}
	return string(raw)
}
