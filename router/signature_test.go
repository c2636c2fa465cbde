package router_test

import (
	"testing"
	"time"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/testing/routertest"
)

// TestSignatureIsVerifiedOnce: an intent that is decided again is not verified again. But each
// decision checks key and grant: a revocation meanwhile refuses it.
func TestSignatureIsVerifiedOnce(t *testing.T) {
	stages, meanwhile := map[string]int{}, func() {}
	w := routertest.New(t, routertest.Options{Meter: &telling{func(stage string) {
		if stages[stage]++; stage == "signature" {
			meanwhile()
		}
	}}})
	twice := routertest.Intent{By: w.Operator, Type: "admin.put", Args: catalog.AdminPut{Tenant: "default", Data: &catalog.Data{Key: "approval", Value: []byte(`{"once":false}`)}}}
	raw := w.Sign(twice)
	clear(stages)
	w.Want(w.Send(raw), intents.OK)
	if stages["signature"] != 1 || stages["schema"] != 2 || stages["policy"] != 2 {
		t.Errorf("stages of an intent that is decided twice: %v", stages)
	}
	for _, c := range []struct {
		name   string
		revoke func()
		code   intents.Code
	}{
		{"its grant", func() {
			w.Want(w.Admin("grant.revoke", catalog.GrantRevoke{Tenant: "default", Sub: "bob", Before: "2026-11-20T10:00:01Z"}), intents.OK)
		}, intents.GrantInvalid},
		{"its key", func() { w.RevokeKey(w.Planner) }, intents.KeyRevoked},
	} {
		o := find(w)
		if c.code == intents.GrantInvalid {
			o.User = "bob"
		}
		raw := w.Sign(o)
		meanwhile = func() { meanwhile = func() {}; c.revoke() }
		if a := w.Send(raw); a.Code != c.code {
			t.Errorf("%s is revoked between signature and decision: %s, want %s", c.name, a.Code, c.code)
		}
	}
}

// telling reports each stage of an intent.
type telling struct{ stage func(string) }

func (m *telling) Stage(stage string, _ time.Duration) { m.stage(stage) }
func (*telling) Decided(string, string, []string)      {}
