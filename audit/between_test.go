package audit_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"aob.dev/writ/audit"
	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/testing/routertest"
	"aob.dev/writ/policies"
	"aob.dev/writ/storage"
)

// moment runs something once while an intent is in flight: after a stage of its
// decision, or between that and its commit.
type moment struct {
	storage.Journal
	mu   sync.Mutex // guards the rest
	when string
	next func()
}

const atCommit = "at the commit"

func (m *moment) set(when string, then func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.when, m.next = when, then
}

func (m *moment) reached(when string) {
	m.mu.Lock()
	then := m.next
	if m.when != when {
		then = nil
	} else {
		m.next = nil
	}
	m.mu.Unlock()
	if then != nil {
		then()
	}
}

func (m *moment) Stage(name string, _ time.Duration) { m.reached(name) }
func (m *moment) Decided(string, string, []string)   {}

func (m *moment) Commit(ctx context.Context, c storage.Commit) (storage.Result, error) {
	m.reached(atCommit)
	return m.Journal.Commit(ctx, c)
}

// between is what a test does with a log while an intent of a user is in flight.
type between struct {
	*world
	user string
	task *routertest.Task
	n    int
}

// changes are made of everything that a decision may rest on.
var changes = map[string]func(b *between){
	"user is disabled": func(b *between) {
		b.Want(b.Admin("admin.put", catalog.AdminPut{Tenant: "default", User: &catalog.User{UserID: b.user, Roles: []string{"user"}, Disabled: true}}), intents.OK)
	},
	"user loses roles": func(b *between) { b.world.user(b.user, "auditor") },
	"role changes": func(b *between) {
		caps := map[bool][]string{true: {"skills:read"}, false: {"policy:explain"}}[b.n%2 == 0]
		b.Want(b.Admin("admin.put", catalog.AdminPut{Tenant: "default", Role: &catalog.RoleData{Role: "few", Capabilities: caps}}), intents.OK)
	},
	"data of the tenant": func(b *between) {
		b.Data("approval", map[bool]string{true: `{"skills":["feed"]}`, false: `{}`}[b.n%2 == 0])
	},
	"data of another tenant": func(b *between) {
		b.Want(b.Admin("admin.put", catalog.AdminPut{Tenant: "acme", Data: &catalog.Data{Key: "x.deny", Value: fmt.Appendf(nil, "%t", b.n%2 == 0)}}), intents.OK)
	},
	"pin of the skill": func(b *between) { b.Pin("feed", []catalog.Effect{catalog.Once, catalog.Pure}[b.n%2]) },
	"grants are revoked": func(b *between) {
		b.Clock.Move(time.Second)
		b.Want(b.Admin("grant.revoke", catalog.GrantRevoke{Tenant: "default", Sub: b.user, Before: intents.FormatTime(b.Clock.Now())}), intents.OK)
	},
	"key is revoked": func(b *between) {
		next := b.NewKey(intents.RolePlanner)
		b.Want(b.Keys(func(s *intents.KeySet) { s.Keys = append(s.Keys, next.VerificationKey().ToJWK()) }), intents.OK)
		b.RevokeKey(b.Planner)
		b.Planner = next
	},
	"policy is pushed": func(b *between) {
		b.put(policies.Tree{Revision: int64(b.n) + 1, Source: b.with("authz/between.rego", func(string) string {
			return fmt.Sprintf("package writ.authz\n\n# METADATA\n# title: Between\n# description: Between.\n# custom:\n#   id: between\ndeny contains {\"id\": \"between\", \"reason\": \"n\", \"hint\": \"\"} if {\n\tinput.intent.type == \"skill.find\"\n\tstartswith(input.intent.args.query, \"q\")\n\t%t\n}\n", b.n%2 == 0)
		}).Source()})
	},
	"task ends": func(b *between) { b.Want(b.task.Fail(), intents.OK) },
}

// submitted are intents that end in each stage, and accepted ones.
var submitted = map[string]func(b *between) routertest.Intent{
	"done":                  func(b *between) routertest.Intent { return b.find() },
	"of few rights":         func(b *between) routertest.Intent { o := b.find(); o.Roles = []string{"few"}; return o },
	"refused by its schema": func(b *between) routertest.Intent { o := b.find(); o.Args = map[string]any{"no": 1}; return o },
	"refused for its signer": func(b *between) routertest.Intent {
		o := b.find()
		o.By = b.Manager
		return o
	},
	"refused for its roles": func(b *between) routertest.Intent { o := b.find(); o.Roles = []string{"none"}; return o },
	"refused by the policy": func(b *between) routertest.Intent {
		o := b.find()
		o.Ctx.Labels = map[string]string{"writ.selfproof": "forbidden"}
		return o
	},
	"call of a task": func(b *between) routertest.Intent {
		return b.mine(b.task.CallIntent("feed", fmt.Sprintf(`{"n":%d}`, b.n)))
	},
	"call of no skill of it": func(b *between) routertest.Intent { return b.mine(b.task.CallIntent("other", `{}`)) },
	"claim of an old epoch":  func(b *between) routertest.Intent { return b.mine(b.task.ClaimIntent(1)) },
}

func (b *between) find() routertest.Intent {
	return b.mine(routertest.Intent{By: b.Planner, Type: "skill.find", Args: catalog.SkillFind{Query: fmt.Sprint("q", b.n)}})
}

func (b *between) mine(o routertest.Intent) routertest.Intent {
	if o.Roles == nil {
		o.Roles = []string{"user", "few"}
	}
	o.User = b.user
	return o
}

// TestChangesWhileDecided: whatever changes while an intent is decided, or between its decision
// and its commit, the log verifies, and every decision is replayed as it was
// recorded: each was made on one state.
func TestChangesWhileDecided(t *testing.T) {
	t.Parallel()
	for what, change := range changes {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			m, held := &moment{}, kept{}
			w := worldOf(routertest.New(t, routertest.Options{
				Blobs: blobs{routertest.NoBlobs{}, held}, Meter: m, Wrap: func(inner storage.Journal) storage.Journal { m.Journal = inner; return m },
			}))
			maps.Copy(held, w.blobs)
			w.blobs = held
			w.Want(w.Admin("admin.put", catalog.AdminPut{New: &catalog.Tenant{ID: "acme"}}), intents.OK)
			w.Pin("feed", catalog.Pure)
			w.Want(w.Admin("admin.put", catalog.AdminPut{Tenant: "default", Role: &catalog.RoleData{Role: "few", Capabilities: []string{"skills:read"}}}), intents.OK)
			w.Approval("{}", "zoe")
			b := &between{world: w}
			stages := []string{"schema", "freshness", "idempotency", "rbac", "policy"}
			for i, name := range slices.Sorted(maps.Keys(submitted)) {
				if what == "policy is pushed" && name != "done" && name != "refused by the policy" {
					continue // each is compiled
				}
				for _, when := range []string{"signature", stages[i%len(stages)], atCommit} { // every stage for some intents
					intent := submitted[name]
					b.n++
					b.user = "ana"
					b.world.user(b.user, "user", "few")
					b.Clock.Move(2 * time.Minute) // no grant is issued right after a revocation
					b.task = b.Begun(fmt.Sprintf("p_%d", b.n), "feed").Started(1)
					raw, done := b.Sign(intent(b)), false
					m.set(when, func() { change(b); done = true })
					a := b.Send(raw)
					m.set("", nil)
					if when == "signature" && !done {
						t.Errorf("%s: it was not decided: %s %s", name, a.Code, a.Reason)
					}
				}
			}
			r := w.verify(w.export(w.Journal, audit.Selection{}), audit.Options{Trust: w.trust(), Replay: true})
			if !r.OK {
				t.Errorf("%+v", r.FirstBad)
			}
		})
	}
}
