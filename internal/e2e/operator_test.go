package e2e

import (
	"crypto/rand"
	"encoding/json"
	"net/http"
	"path/filepath"
	"slices"
	"time"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/keydir"
)

// operate signs an intent with the operator's key of the data directory and
// submits it as anybody would.
func (s *system) operate(typ string, args any) {
	s.t.Helper()
	var jwks intents.JWKS
	s.call(person{}, http.MethodGet, "/.well-known/jwks.json", nil, &jwks)
	signed := s.byOperator(jwks.Origin, typ, args)
	var a intents.Answer
	if status, p := s.call(person{}, http.MethodPost, "/v1/intents", json.RawMessage(signed), &a); status != http.StatusOK || a.Code != intents.OK {
		s.t.Fatalf("%s: HTTP %d %+v %+v", typ, status, p, a)
	}
}

// byOperator signs an intent of the operator of system.
func (s *system) byOperator(origin, typ string, args any) []byte {
	s.t.Helper()
	keys, err := keydir.Load(filepath.Join(s.dir, "keys"))
	if err != nil {
		s.t.Fatal(err)
	}
	raw, err := json.Marshal(args)
	if err != nil {
		s.t.Fatal(err)
	}
	signed, _, err := intents.Sign(keys[intents.RoleOperator], intents.Body{
		Version: intents.Version, Intent: intents.Spec{Type: typ, Args: raw}, Actor: intents.Actor{UserID: "local", Tenant: "system"},
		Constraints: intents.Constraints{IssuedAt: intents.FormatTime(time.Now()), TTLSec: 60, Audience: origin, IdempotencyKey: "rnd_" + rand.Text()},
	})
	if err != nil {
		s.t.Fatal(err)
	}
	return signed
}

// holdNothing lets calls of skills run that a new log holds: those that act once.
func (s *system) holdNothing() {
	s.t.Helper()
	s.operate("admin.put", catalog.AdminPut{Tenant: "default", Data: &catalog.Data{Key: "approval", Value: json.RawMessage(`{"once":false}`)}})
}

// unknown waits until the first step of a plan waits for the outcome of a call, and returns the
// call.
func (s *system) unknown(id string) (intentID string) {
	s.t.Helper()
	var v catalog.PlanView
	s.await("a step waits", func() bool { v = s.planOf(s.as("local"), id); return v.Steps[0].Status == catalog.StepPendingApproval })
	i := slices.IndexFunc(v.IntentHistory, func(f catalog.PastIntent) bool { return f.Status == string(intents.StatusIndetermined) })
	if i < 0 {
		s.t.Fatalf("nothing is unknown: %+v", v.IntentHistory)
	}
	return v.IntentHistory[i].IntentID
}

// resolve reports the outcome of a call with an unknown one.
func (s *system) resolve(intentID, status string) {
	s.t.Helper()
	s.operate("intent.resolve", catalog.IntentResolve{IntentID: intentID, Status: status, Reason: "seen at the server"})
}

// addTenant makes a tenant.
func (s *system) addTenant(id string) {
	s.t.Helper()
	s.operate("admin.put", catalog.AdminPut{New: &catalog.Tenant{ID: id}})
}

// addPerson makes an API key that is one user's own.
func (s *system) addPerson(tenant, user string, roles ...string) person {
	s.t.Helper()
	key := "writ_test_" + rand.Text()
	s.operate("admin.put", catalog.AdminPut{Tenant: tenant, APIKey: &catalog.APIKey{
		ID: tenant + "-" + user, Hash: intents.Digest([]byte(key)), UserID: user, MaxRoles: roles,
	}})
	return person{key: key, user: user}
}

// approveFor pins for a tenant what is pinned for tenant default.
func (s *system) approveFor(tenant string) {
	s.t.Helper()
	pins := 0
	for _, o := range s.intents("") {
		var pin catalog.SkillApprove
		if o.Type != "skill.approve" {
			continue
		}
		if err := json.Unmarshal(o.Args, &pin); err != nil {
			s.t.Fatal(err)
		}
		if pin.Tenant == "default" {
			pin.Tenant = tenant
			s.operate("skill.approve", pin)
			pins++
		}
	}
	if pins == 0 {
		s.t.Fatal("tenant default has no pins")
	}
}

// await polls until a condition holds.
func (s *system) await(what string, holds func() bool) {
	s.t.Helper()
	s.awaitEvery(20*time.Millisecond, what, holds)
}

// awaitEvery looks less often, such as at what has a rate.
func (s *system) awaitEvery(d time.Duration, what string, holds func() bool) {
	s.t.Helper()
	look := time.NewTicker(d)
	defer look.Stop()
	late := time.After(time.Minute)
	for !holds() {
		select {
		case <-look.C:
		case <-late:
			s.t.Fatalf("not in a minute: %s", what)
		}
	}
}
