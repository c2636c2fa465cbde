package knowledge_test

import (
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
)

// leakQueries is how many questions TestNoLeak asks; unset, it is a few.
const leakQueries = "WRIT_KB_QUERIES"

// TestNoLeak: whatever a user asks, no answer has what another user or tenant has added.
func TestNoLeak(t *testing.T) {
	queries := 2000
	if raw := os.Getenv(leakQueries); raw != "" {
		var err error
		if queries, err = strconv.Atoi(raw); err != nil {
			t.Fatal(err)
		}
	}
	b := on(t, embedded(t), withHashed(t))
	random := rand.New(rand.NewPCG(uint64(queries), 7))
	words := strings.Fields("harbour lock opens closes six seven rule night ship port invoice due crane tide pilot berth")
	say := func(n int) string {
		out := make([]string, n)
		for i := range out {
			out[i] = words[random.IntN(len(words))]
		}
		return strings.Join(out, " ")
	}
	tenants, users := []string{"acme", "acme2", "evil"}, []string{"ana", "bob", "a", "an"}
	documents := map[string]string{} // by id: who reads it
	var ids []string
	for _, tenant := range tenants {
		for _, user := range users {
			for range 6 {
				a := plain(say(2), say(12))
				a.Metadata = map[string]string{"team": words[random.IntN(3)]}
				reader := tenant + "/" + user
				if random.IntN(4) == 0 {
					a, reader = ofTenant(a), tenant+"/"
				}
				id := b.index(t, tenant, user, a).DocumentID
				documents[id], ids = reader, append(ids, id)
			}
		}
	}
	found, refused := 0, 0
	for n := range queries {
		tenant, user := tenants[random.IntN(len(tenants))], users[random.IntN(len(users))]
		q := catalog.KBSearch{Q: say(1 + random.IntN(4)), K: new(1 + random.IntN(50)), Hybrid: new(random.IntN(2) == 0), Filters: map[string]string{}}
		named := tenant
		if random.IntN(3) == 0 {
			named = tenants[random.IntN(len(tenants))]
			q.Filters["tenant"] = named
		}
		if random.IntN(4) == 0 {
			q.Filters["document_id"] = ids[random.IntN(len(ids))]
		}
		if random.IntN(4) == 0 {
			q.Filters["scope"] = []string{"user", "tenant"}[random.IntN(2)]
		}
		if random.IntN(4) == 0 {
			q.Filters[[]string{"team", "reader", "user_id", "tenant_id"}[random.IntN(4)]] = words[random.IntN(3)]
		}
		var got catalog.KBSearchResult
		if named != tenant {
			if r := b.Do(t, as(tenant, user, "kb.search", q)); r.Code != intents.RBACForbidden || pointerOf(t, r) != "/filters/tenant" {
				t.Fatalf("question %d of %s/%s: %+v: %+v", n, tenant, user, q, r)
			}
			refused++
			continue
		}
		b.Must(t, as(tenant, user, "kb.search", q), &got)
		for _, h := range got.Hits {
			if !slices.Contains([]string{tenant + "/" + user, tenant + "/"}, documents[h.DocumentID]) {
				t.Fatalf("question %d: %s/%s finds %s's: %+v", n, tenant, user, documents[h.DocumentID], q)
			}
		}
		found += len(got.Hits)
	}
	if found < queries || refused < queries/10 {
		t.Errorf("%d hits and %d refusals in %d questions show nothing", found, refused, queries)
	}
	t.Logf("%d questions, %d hits, %d refused", queries, found, refused)
}
