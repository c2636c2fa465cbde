package audit_test

import (
	"encoding/json"
	"slices"
	"time"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/testing/routertest"
	"aob.dev/writ/storage"
)

var directoryMisdeeds = []misdeed{
	{"grant-revoked", "revoked", "every intent: its grant was not revoked", "grant was revoked", func(d *dishonest) int64 {
		d.grant.By = d.operator // a planner's key of now
		return d.accepted(d.grant)
	}},
	{"key-revoked", "revoked", "every intent: its key was not revoked", "KEY_REVOKED", func(d *dishonest) int64 {
		d.Clock.Move(intents.Leeway + time.Second) // the grants of now are good
		return d.accepted(d.finds("by a revoked key", ""))
	}},
	{"grant-expired", "directory", "every intent: its grant is the actor's, of the session and turn, for this work, and of now", "GRANT_INVALID", func(d *dishonest) int64 {
		return d.accepted(d.granted(func(g *intents.Grant) { g.IssuedAt, g.Expires = g.IssuedAt-800, g.IssuedAt-10 }))
	}},
	{"grant-of-another-user", "directory", "every intent: its grant is the actor's, of the session and turn, for this work, and of now", "RBAC_FORBIDDEN", func(d *dishonest) int64 {
		return d.accepted(d.granted(func(g *intents.Grant) { g.Subject = "ben" }))
	}},
	{"grant-of-another-session", "directory", "every intent: its grant is the actor's, of the session and turn, for this work, and of now", "GRANT_INVALID", func(d *dishonest) int64 {
		return d.accepted(d.granted(func(g *intents.Grant) { g.Session = "S2" }))
	}},
	{"grant-for-other-work", "directory", "every intent: its grant is the actor's, of the session and turn, for this work, and of now", "GRANT_INVALID", func(d *dishonest) int64 {
		return d.accepted(d.granted(func(g *intents.Grant) { g.For = "plan:plan_2" }))
	}},
	{"api-key-not-there", "directory", "every intent: the directory has the API key that its grant came through", "RBAC_FORBIDDEN", func(d *dishonest) int64 {
		return d.accepted(d.granted(through("gone")))
	}},
	{"grant-by-manager", "directory", "every intent: a gateway's key has signed its grant", "GRANT_INVALID", func(d *dishonest) int64 {
		o := d.finds("by my own grant", "")
		o.IssuedBy = &d.Manager
		return d.accepted(o)
	}},
	{"key-set-left-out", "directory", "key.put: the key set is the successor of the one in force", "successor", func(d *dishonest) int64 {
		return d.accepted(d.keySet(2))
	}},
	{"key-set-again", "directory", "key.put: the key set is the successor of the one in force", "successor", func(d *dishonest) int64 {
		return d.accepted(d.keySet(0))
	}},
	{"role-by-auditor", "directory", "every intent: the actor's roles give the type's capability", "RBAC_FORBIDDEN", func(d *dishonest) int64 {
		o := routertest.Intent{By: d.operator, User: "olga", Tenant: "default", Roles: []string{"auditor"}, Type: "admin.put"}
		o.Args = catalog.AdminPut{User: &catalog.User{UserID: "olga", Roles: []string{"admin"}}}
		return d.accepted(o)
	}},
	{"role-by-gateway", "directory", "every intent: the key's role may sign the type", "may not sign", func(d *dishonest) int64 {
		o := routertest.Intent{By: d.Gateway, Type: "admin.put", Args: catalog.AdminPut{User: &catalog.User{UserID: "ana", Roles: []string{"admin"}}}}
		return d.accepted(o)
	}},
	{"tenant-by-its-operator", "directory", "an operator's intent: only operators of system name another tenant", "RBAC_FORBIDDEN", func(d *dishonest) int64 {
		d.operatorBecomes("admin")
		o := routertest.Intent{By: d.operator, User: "olga", Tenant: "default", Roles: []string{"admin"}, Type: "admin.put"}
		o.Args = catalog.AdminPut{Tenant: "acme", User: &catalog.User{UserID: "olga", Roles: []string{"admin"}}}
		return d.accepted(o)
	}},
	{"sources-of-another", "running", "a task's intent: facts.task.sources are those of its plan and of what it names", "other sources", func(d *dishonest) int64 {
		return d.accepted(d.task.CallIntent("feed", `{"n":7}`), func(a *appended) {
			a.inputs.Task.Sources = []intents.Source{{Kind: intents.SourceServer, Name: "other", Trusted: true}}
		})
	}},
	{"source-left-out", "running", "a task's intent: its outcome leaves out no source that it has read", "leaves out whose content", func(d *dishonest) int64 {
		of := d.accepted(d.task.CallIntent("feed", `{"n":7}`), func(a *appended) { a.outcome = nil })
		at, _ := d.now()
		return d.add(storage.KindOutcome, at, map[string]any{
			storage.PartOutcome: map[string]any{"of": of, "attempt": 1, "status": "done", "code": "OK", "duration_ms": 0}, storage.PartResult: catalog.SkillCallResult{Output: json.RawMessage(`1`)},
		})
	}},
	{"tenant-twice", "directory", "admin.put: no tenant has the id", "exists", func(d *dishonest) int64 {
		return d.accepted(routertest.Intent{By: d.Operator, Type: "admin.put", Args: catalog.AdminPut{New: &catalog.Tenant{ID: "acme"}}})
	}},
	{"no-such-tenant", "directory", "admin.put: the tenant is there", "no such tenant", func(d *dishonest) int64 {
		return d.accepted(routertest.Intent{By: d.Operator, Type: "admin.put", Args: catalog.AdminPut{Tenant: "globex", User: &catalog.User{UserID: "ana", Roles: []string{"user"}}}})
	}},
	{"skill-of-system-by-gateway", "directory", "skill.approve: a gateway signs it for no user of system", "key of an operator", func(d *dishonest) int64 {
		o := routertest.Intent{By: d.Gateway, User: "local", Tenant: "system", Roles: []string{"admin"}, Type: "skill.approve", Ctx: intents.Context{TurnID: "turn_skill"}}
		o.Args = catalog.SkillApprove{Tenant: "acme", Skill: "crm.feed", Digest: intents.Digest(nil), Effect: catalog.Pure}
		return d.accepted(o)
	}},
	{"no-such-operator", "directory", "an operator's intent: the directory has the user", "RBAC_FORBIDDEN", func(d *dishonest) int64 {
		key := d.NewKey(intents.RoleOperator)
		k := key.VerificationKey()
		k.Subject, k.Tenant = "nobody", "default"
		d.accepted(d.nextKeySet(func(s *intents.KeySet) { s.Keys = append(s.Keys, k.ToJWK()) }))
		o := routertest.Intent{By: key, User: "nobody", Tenant: "default", Roles: []string{"admin"}, Type: "admin.put"}
		o.Args = catalog.AdminPut{User: &catalog.User{UserID: "nobody", Roles: []string{"admin"}}}
		return d.accepted(o)
	}},
	{"knowledge-without-capability", "directory", "every intent: the actor's roles give the type's capability", "RBAC_FORBIDDEN", func(d *dishonest) int64 {
		return d.accepted(routertest.Intent{By: d.Gateway, Type: "kb.index", Ctx: intents.Context{TurnID: "turn_kb"}, Args: catalog.KBIndex{
			Title: "Ours", Data: json.RawMessage(`"For all."`), MediaType: "text/plain", Scope: catalog.KnowledgeOfTenant,
		}})
	}},
	{"disabled-user", "directory", "every intent: a disabled user has no roles", "RBAC_FORBIDDEN", func(d *dishonest) int64 {
		o := d.finds("still here", "")
		o.User = "dora"
		return d.accepted(o)
	}},
	{"unknown-tenant", "directory", "every intent: the directory has the tenant", "RBAC_FORBIDDEN", func(d *dishonest) int64 {
		o := d.finds("from nowhere", "")
		o.Tenant = "globex"
		return d.accepted(o)
	}},
	{"roles-beyond-grant", "directory", "every intent: roles are those of the grant that the directory gives too", "roles", func(d *dishonest) int64 {
		return d.accepted(d.finds("as admin", ""), func(a *appended) { a.inputs.Roles = []string{"user", "admin"} })
	}},
	{"alone-anew", "directory", "admin.put: only a genesis says who is alone", "decided at the first start", func(d *dishonest) int64 {
		return d.accepted(routertest.Intent{By: d.Operator, Type: "admin.put", Args: catalog.AdminPut{Tenant: "default", Data: &catalog.Data{Key: "alone", Value: json.RawMessage(`"ana"`)}}})
	}},
	{"alone-beside-a-key", "alone", "admin.put: only a genesis says who is alone", "decided at the first start", func(d *dishonest) int64 {
		d.accepted(routertest.Intent{By: d.Operator, Type: "admin.put", Args: catalog.AdminPut{Tenant: "default", APIKey: &catalog.APIKey{
			ID: "ben", Hash: intents.Digest([]byte("ben")), UserID: "ben", MaxRoles: []string{"approver"},
		}}})
		return d.accepted(routertest.Intent{By: d.Operator, Type: "admin.put", Args: catalog.AdminPut{Tenant: "default", Data: &catalog.Data{Key: "alone", Value: json.RawMessage(`"ana"`)}}})
	}},
	{"api-key-of-one-that-asserts", "directory", "admin.put: a key of one person in the console and terminals is no program's", "asserts nobody", func(d *dishonest) int64 {
		return d.accepted(routertest.Intent{By: d.Operator, Type: "admin.put", Args: catalog.AdminPut{Tenant: "default", APIKey: &catalog.APIKey{
			ID: "x", Hash: intents.Digest([]byte("x")), UserID: "ana", MaxRoles: []string{}, MayAssertUser: true, InPerson: true,
		}}})
	}},
	{"api-key-twice", "directory", "admin.put: of the API keys of a tenant each has its own id", "has this id", func(d *dishonest) int64 {
		key := func(text string) routertest.Intent {
			k := catalog.APIKey{ID: "k2", Hash: intents.Digest([]byte(text)), UserID: "ana", MaxRoles: []string{"user"}}
			return routertest.Intent{By: d.Operator, Type: "admin.put", Args: catalog.AdminPut{Tenant: "default", APIKey: &k}}
		}
		d.accepted(key("one"))
		return d.accepted(key("other"))
	}},
	{"revoked-nowhere", "directory", "grant.revoke: the tenant is there", "no such tenant", func(d *dishonest) int64 {
		before := intents.FormatTime(d.Clock.Now())
		return d.accepted(routertest.Intent{By: d.Operator, Type: "grant.revoke", Args: catalog.GrantRevoke{Tenant: "globex", Sub: "ana", Before: before}})
	}},
	{"resolved-twice", "resolved", "intent.resolve: nobody knows how the intent ended", "indeterminate", func(d *dishonest) int64 {
		return d.accepted(routertest.Intent{By: d.Operator, Type: "intent.resolve", Args: catalog.IntentResolve{IntentID: d.unsure.IntentID, Status: "done", Reason: "after all"}})
	}},
	{"resolved-though-known", "between-steps", "intent.resolve: nobody knows how the intent ended", "indeterminate", func(d *dishonest) int64 {
		return d.accepted(routertest.Intent{By: d.Operator, Type: "intent.resolve", Args: catalog.IntentResolve{IntentID: d.plan.Digest, Status: "failed", Reason: "no"}})
	}},
	{"revoked-ahead", "directory", "grant.revoke: before is not in the future", "future", func(d *dishonest) int64 {
		before := intents.FormatTime(d.Clock.Now().Add(time.Hour))
		return d.accepted(routertest.Intent{By: d.Operator, Type: "grant.revoke", Args: catalog.GrantRevoke{Tenant: "default", Sub: "ana", Before: before}})
	}},
}

// granted is an intent with a changed grant.
func (d *dishonest) granted(change func(*intents.Grant)) routertest.Intent {
	o := d.finds("granted", "")
	o.Grant = change
	return o
}

// keySet puts a key set that is so many versions after the one in force, which
// it names as the one before.
func (d *dishonest) keySet(ahead int64) routertest.Intent {
	return d.nextKeySet(func(s *intents.KeySet) { s.Version += ahead - 1 })
}

// nextKeySet is key.put of the key set in force, changed.
func (d *dishonest) nextKeySet(change func(*intents.KeySet)) routertest.Intent {
	d.Helper()
	jwks := d.Dir.JWKS()
	set := intents.KeySet{Version: jwks.Version + 1, Prev: intents.Digest([]byte(jwks.KeySet)), Keys: slices.Clone(jwks.Keys)}
	change(&set)
	token, err := intents.SignKeySet(d.Root, set)
	d.Must(err)
	return routertest.Intent{By: d.Operator, Type: "key.put", Args: catalog.KeyPut{KeySet: token}}
}

// operatorBecomes gives the scene's operator a role.
func (d *dishonest) operatorBecomes(role string) {
	d.Helper()
	d.accepted(routertest.Intent{By: d.Operator, Type: "admin.put", Args: catalog.AdminPut{Tenant: "default", User: &catalog.User{UserID: "olga", Roles: []string{role}}}})
}
