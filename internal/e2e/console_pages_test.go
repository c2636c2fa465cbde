package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/node"
	"aob.dev/writ/router"
)

// TestConsolePages: no page of the console has more than 60 KB or takes long, however many intents there
// are. WRIT_INTENTS says how many; then the test prints the time of each page, and leaves the audit of so
// many to TestIntegrationAuditMemory.
func TestConsolePages(t *testing.T) {
	t.Parallel()
	total, given := 200, setup{Limits: node.Limits{Requests: -1, Rates: router.Rates{Signer: -1, Tenant: -1}}}
	if text := os.Getenv("WRIT_INTENTS"); text != "" {
		var err error
		if total, err = strconv.Atoi(text); err != nil {
			t.Fatal(err)
		}
		given.Unaudited = "TestIntegrationAuditMemory audits as many"
	}
	s := start(t, given)
	ben := s.addPerson("default", "ben", "user", "auditor", "approver", "admin")
	turn := s.ask(ben, "What is the answer?")
	s.fill("ben", total)
	b := s.at(ben)
	var list struct {
		Intents []catalog.IntentEntry `json:"intents"`
	}
	if _, p := s.call(ben, http.MethodGet, "/v1/intents?limit=1", nil, &list); len(list.Intents) != 1 {
		t.Fatalf("%+v %+v", p, list)
	}
	for _, path := range append([]string{"/console/plans/" + turn.PlanID, "/console/intents/" + list.Intents[0].IntentID, "/console/record?verdict=allow&type=audit.read"}, consolePages...) {
		var took []time.Duration
		var p page
		for range 5 {
			began := time.Now()
			p = b.open(path)
			took = append(took, time.Since(began))
			p.shows(t)
		}
		slices.Sort(took)
		if len(p.text) > 60<<10 || took[2] > 5*time.Second {
			t.Errorf("%s: %d bytes in %s", p.path, len(p.text), took[2])
		}
		if given.Unaudited != "" {
			t.Logf("%-70s %6d bytes %4d ms", path, len(p.text), took[2].Milliseconds())
		}
	}
}

// fill has somebody's gateway sign many small intents.
func (s *system) fill(user string, total int) {
	s.t.Helper()
	key, err := intents.ReadKey(filepath.Join(s.dir, "keys", "gateway.pem"), intents.RoleGateway)
	if err != nil {
		s.t.Fatal(err)
	}
	raw, err := json.Marshal(catalog.AuditRead{Subject: catalog.SubjectIntent(intents.Digest(nil))})
	if err != nil {
		s.t.Fatal(err)
	}
	roles := []string{"user", "auditor"}
	one := func(ctx context.Context) error {
		now := s.Now()
		grant, err := intents.IssueGrant(key, intents.Grant{
			Issuer: s.node.Origin(), Audience: s.node.Origin(), Subject: user, Tenant: "default", Roles: roles, Turn: "turn_1",
			Act: intents.Act{Client: "default-" + user, AMR: []string{"api_key"}}, IssuedAt: now.Unix(), Expires: now.Add(time.Minute).Unix(), ID: catalog.RandomKey(),
		})
		if err != nil {
			return err
		}
		signed, _, err := intents.Sign(key, intents.Body{
			Version: intents.Version, Intent: intents.Spec{Type: catalog.TypeAuditRead, Args: raw}, Actor: intents.Actor{UserID: user, Tenant: "default", Roles: roles, Grant: grant},
			Context:     &intents.Context{TurnID: "turn_1"},
			Constraints: intents.Constraints{IssuedAt: intents.FormatTime(now), TTLSec: 60, Audience: s.node.Origin(), IdempotencyKey: catalog.RandomKey()},
		})
		if err != nil {
			return err
		}
		a, err := s.node.Router().Submit(ctx, signed)
		if err == nil && a.Code != intents.OK {
			err = fmt.Errorf("%s: %s", a.Code, a.Reason)
		}
		return err
	}
	var next atomic.Int64
	var all sync.WaitGroup
	for range 32 {
		all.Go(func() {
			for next.Add(1) <= int64(total) {
				if err := one(s.t.Context()); err != nil {
					s.t.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
	if s.t.Failed() {
		s.t.FailNow()
	}
}
