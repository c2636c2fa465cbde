package audit_test

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"io"
	"strings"
	"testing"
	"time"

	"aob.dev/writ/audit"
	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/testing/routertest"
	"aob.dev/writ/state"
	"aob.dev/writ/storage"
)

// part is the log with one part of a record changed.
func (w *world) part(at int64, name string, change func(m map[string]any)) slice {
	w.Helper()
	return w.rewritten(at, func(r *storage.Record) {
		var m map[string]any
		w.Must(json.Unmarshal(r.Parts[name], &m))
		change(m)
		raw, err := json.Marshal(m)
		w.Must(err)
		r.Parts[name] = raw
	})
}

// permits is the log in which a refused intent was accepted.
func (w *world) permits(at int64) slice {
	w.Helper()
	return w.rewritten(at, func(r *storage.Record) {
		envelope, err := intents.ReadSigned(r.Parts[storage.PartEnvelope])
		w.Must(err)
		u, err := envelope.Open()
		w.Must(err)
		d, err := intents.ReadDecision(r.Parts[storage.PartDecision])
		w.Must(err)
		b := u.Body()
		d.Verdict, d.Code, d.Pointer, d.Reason, d.Hint, d.PolicyIDs = intents.Allow, intents.OK, "", "", "", nil
		d.Key = storage.NewIntentKeys(routertest.KeySecret).Key(b.Actor.Tenant, b.Actor.UserID, b.Intent.Type, b.Constraints.IdempotencyKey).String()
		delete(r.Parts, storage.PartSummary)
		parts := map[string]any{storage.PartDecision: d}
		if s := w.summary(u, d); s != nil {
			parts[storage.PartSummary] = s
		}
		for name, v := range parts {
			r.Parts[name], err = json.Marshal(v)
			w.Must(err)
		}
	})
}

// summary returns the summary of an intent; nil: it has none.
func (w *world) summary(u *intents.Unverified, dec intents.Decision) *storage.Summary {
	w.Helper()
	s, wants, err := state.SummaryOf(u.AsRecorded(), dec)
	if w.Must(err); !wants {
		return nil
	}
	b := u.Body() // its signature was not verified, so its signer is unknown
	s.Tenant, s.User = b.Actor.Tenant, b.Actor.UserID
	if dec.Verdict != intents.Deny {
		var args struct {
			PlanID string `json:"plan_id"`
		}
		_ = json.Unmarshal(b.Intent.Args, &args) // others name none
		s.PlanID = args.PlanID
	}
	return &s
}

// find is the last record whose part a test picks.
func (w *world) find(part string, is func(m map[string]any) bool) int64 {
	w.Helper()
	at := int64(-1)
	for _, r := range w.Records() {
		var m map[string]any
		if raw, there := r.Parts[part]; there && json.Unmarshal(raw, &m) == nil && is(m) {
			at = r.Position
		}
	}
	if at < 0 {
		w.Fatal("no such record")
	}
	return at
}

// badAt wants a bundle of records to be found bad at a position.
func (w *world) badAt(records slice, at int64, want string, o audit.Options) {
	w.Helper()
	o.Trust = w.trust()
	r := w.verify(w.export(records, audit.Selection{}), o)
	if r.OK || r.FirstBad == nil || r.FirstBad.Position != at || !strings.Contains(r.FirstBad.Reason, want) {
		w.Errorf("%+v, want at %d: %s", r.FirstBad, at, want)
	}
}

// paying is an intent that waits for two of ben, cleo and dave.
func (w *world) paying() (held *intents.Answer, says func(who string, by *intents.Signer) routertest.Intent) {
	w.Helper()
	w.Pin("pay", catalog.Once)
	w.apiKeys("k1", "ben", "cleo", "dave")
	w.Approval(`{"once":true,"count":2}`, "ben", "cleo", "dave")
	held = w.Want(w.Begun("p_pay", "pay").Started(1).Call("pay", `{}`), intents.ApprovalRequired)
	return held, func(who string, by *intents.Signer) routertest.Intent {
		return routertest.Intent{
			By: w.Gateway, IssuedBy: by, Type: "hitl.approve", User: who, Roles: []string{"approver"}, Ctx: intents.Context{TurnID: rand.Text()},
			Args: catalog.Approve{IntentID: held.IntentID, Decision: catalog.DecisionApprove}, Grant: through(who),
		}
	}
}

// apiKeys puts API keys of tenant default: k1, which asks, and one of each person.
func (w *world) apiKeys(ids ...string) {
	w.Helper()
	for _, id := range ids {
		w.Want(w.Admin("admin.put", catalog.AdminPut{Tenant: "default", APIKey: &catalog.APIKey{
			ID: id, Hash: intents.Digest([]byte(id)), UserID: id, MaxRoles: []string{"user", "approver"}, MayAssertUser: id == "k1",
		}}), intents.OK)
	}
}

// through is the grant of somebody with an API key.
func through(key string) func(*intents.Grant) {
	return func(g *intents.Grant) { g.Act.Client = intents.ClientOf(key) }
}

func (w *world) user(who string, roles ...string) {
	w.Helper()
	w.Want(w.Admin("admin.put", catalog.AdminPut{Tenant: "default", User: &catalog.User{UserID: who, Roles: roles}}), intents.OK)
}

// TestForgedApprovals: a release that counts an approval which did not count by then is found.
func TestForgedApprovals(t *testing.T) {
	revoke := func(before string) func(w *world, _ intents.Signer) {
		return func(w *world, _ intents.Signer) {
			w.Want(w.Admin("grant.revoke", catalog.GrantRevoke{Tenant: "default", Sub: "ben", Before: before}), intents.OK)
		}
	}
	for name, c := range map[string]struct {
		since func(w *world, second intents.Signer)
		forge func(ben map[string]any)
		want  string
	}{
		"grant revoked": {since: revoke("2026-11-20T10:00:02Z"), want: "a grant that was revoked"},
		"grant revoked, and an earlier one again": {since: func(w *world, s intents.Signer) {
			revoke("2026-11-20T10:00:02Z")(w, s)
			revoke("2026-11-20T09:00:00Z")(w, s)
		}, want: "a grant that was revoked"},
		"key of the grant revoked": {since: func(w *world, s intents.Signer) { w.RevokeKey(s) }, want: "a grant that was revoked"},
		"role lost":                {since: func(w *world, _ intents.Signer) { w.user("ben", "user") }, want: "roles of ben that the directory does not give"},
		"roles made up": {
			since: func(w *world, _ intents.Signer) { w.user("ben", "user") },
			forge: func(ben map[string]any) { ben["roles"] = []string{"user"} },
			want:  "roles of ben that the person had not",
		},
		"through another key": {
			since: func(w *world, _ intents.Signer) { w.user("ben", "user") },
			forge: func(ben map[string]any) { ben["key"] = "dave" },
			want:  "through another API key",
		},
		"disabled": {since: func(w *world, _ intents.Signer) {
			w.Want(w.Admin("admin.put", catalog.AdminPut{Tenant: "default", User: &catalog.User{UserID: "ben", Roles: []string{"approver"}, Disabled: true}}), intents.OK)
		}, want: "no user any more"},
		"at another time": {
			since: revoke("2026-11-20T10:00:02Z"),
			forge: func(ben map[string]any) { ben["at"] = "2026-11-20T10:00:03.000Z" },
			want:  "an approval that nobody gave",
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			second := w.NewKey(intents.RoleGateway)
			w.Want(w.Keys(func(s *intents.KeySet) { s.Keys = append(s.Keys, second.VerificationKey().ToJWK()) }), intents.OK)
			held, says := w.paying()
			w.Want(w.Do(says("ben", &second)), intents.OK)
			at := w.Clock.Now()
			w.Clock.Move(time.Minute)
			c.since(w, second)
			w.Want(w.Do(says("cleo", nil)), intents.OK)
			w.Want(w.Do(says("dave", nil)), intents.OK)
			out, err := w.Router.Await(w.Context(), *held.Position)
			w.Must(err)
			w.Want(out, intents.OK)
			if r := w.verify(w.export(w.Journal, audit.Selection{}), audit.Options{Trust: w.trust()}); !r.OK {
				t.Fatalf("%+v", r.FirstBad)
			}
			release := w.find(storage.PartRelease, func(map[string]any) bool { return true })
			w.badAt(w.part(release, storage.PartRelease, func(m map[string]any) {
				ben := map[string]any{"user_id": "ben", "at": intents.FormatTime(at), "key": "ben", "roles": []string{"approver"}}
				if c.forge != nil {
					c.forge(ben)
				}
				m["facts"].(map[string]any)["approvals"].([]any)[0] = ben
			}), release, c.want, audit.Options{})
		})
	}
}

// TestForgedApproval: an approval that had to be refused is found if its record accepts it.
func TestForgedApproval(t *testing.T) {
	for name, c := range map[string]struct {
		change func(w *world, o *routertest.Intent)
		want   string
	}{
		"standing grant": {func(_ *world, o *routertest.Intent) {
			o.Grant = func(g *intents.Grant) { g.For = "plan:p_pay" }
			o.Ctx.PlanID = "p_pay"
		}, "the approver was there"},
		"old grant": {func(w *world, o *routertest.Intent) {
			at := w.Clock.Now().Add(-6 * time.Minute).Unix()
			o.Grant = func(g *intents.Grant) { g.IssuedAt, g.Expires = at, at+14*60 }
		}, "the approver was there"},
		"not authenticated": {func(_ *world, o *routertest.Intent) { o.Grant = func(g *intents.Grant) { g.Act.AMR = nil } }, "the approver was there"},
		"too late":          {func(w *world, _ *routertest.Intent) { w.Clock.Move(intents.MaxHold) }, "after its deadline"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			_, says := w.paying()
			o := says("ben", nil)
			c.change(w, &o)
			a := w.Do(o)
			if a.Code == intents.OK || a.Position == nil {
				t.Fatalf("%+v", a)
			}
			w.badAt(w.permits(*a.Position), *a.Position, c.want, audit.Options{})
		})
	}
}

// TestForgedHold: policy decides what a held intent waits for, and how the hold ends
// is in the record.
func TestForgedHold(t *testing.T) {
	w := newWorld(t)
	w.approvals()
	held := w.find(storage.PartDecision, func(m map[string]any) bool { return m["verdict"] == "hold" })
	terms := func(change func(hold map[string]any)) slice {
		return w.part(held, storage.PartDecision, func(m map[string]any) { change(m["hold"].(map[string]any)) })
	}
	w.badAt(w.part(held, storage.PartDecision, func(m map[string]any) { delete(m, "hold") }), held, "what for", audit.Options{})
	w.badAt(terms(func(h map[string]any) { h["rules"] = []any{} }), held, "what for", audit.Options{})
	w.badAt(terms(func(h map[string]any) { h["deadline"] = "2027-01-01T00:00:00.000Z" }), held, "more than a day", audit.Options{})
	w.badAt(terms(func(h map[string]any) { h["rules"].([]any)[0].(map[string]any)["count"] = 1 }), held, "other terms", audit.Options{Replay: true})

	ended := func(from, to string) (slice, int64) {
		at := w.find(storage.PartOutcome, func(m map[string]any) bool { return m["code"] == from })
		return w.part(at, storage.PartOutcome, func(m map[string]any) { m["code"] = to }), at
	}
	records, at := ended("CANCELLED", "APPROVAL_REJECTED")
	w.badAt(records, at, "nobody said so", audit.Options{})
	records, at = ended("CANCELLED", "APPROVAL_EXPIRED")
	w.badAt(records, at, "before its deadline", audit.Options{})
}

// TestForgedBatch: the intents of a batch are adjacent.
func TestForgedBatch(t *testing.T) {
	w := newWorld(t)
	w.live(1)
	second := w.find(storage.PartDecision, func(m map[string]any) bool {
		b, _ := m["batch"].(map[string]any)
		return b != nil && b["index"] == 1.0
	})
	w.badAt(w.part(second-1, storage.PartDecision, func(m map[string]any) { delete(m, "batch") }), second, "batch", audit.Options{})
	for _, offset := range []int64{2, -1} {
		w.badAt(w.part(second, storage.PartDecision, func(m map[string]any) { m["batch"] = map[string]any{"index": 1, "offset": offset} }), second, "batch", audit.Options{})
	}
	w.badAt(w.part(second, storage.PartDecision, func(m map[string]any) { m["batch"] = map[string]any{"index": 0, "offset": 1} }), second, "batch", audit.Options{})
	of := func(at int64, n int) slice {
		return w.part(at, storage.PartDecision, func(m map[string]any) { m["batch"].(map[string]any)["of"] = n })
	}
	w.badAt(of(second, 3), second, "another number of intents", audit.Options{})
	// Its second intent is alone: the batch was accepted with more than is here.
	w.badAt(w.part(second, storage.PartDecision, func(m map[string]any) { m["batch"] = map[string]any{"index": 0, "offset": 0, "of": 1} }), second, "accepted with 2 intents, and 1 are here", audit.Options{})
}

// TestRevokedLedgerKey: a ledger key is valid for the log until its revocation, not beyond.
func TestRevokedLedgerKey(t *testing.T) {
	w := newWorld(t)
	w.live(1)
	pinned := w.trust()
	pinned.Checkpoint = header(t, w.export(w.Journal, audit.Selection{})).Last
	old, next := w.ledgerKey, w.NewKey(intents.RoleLedger)
	w.Want(w.Keys(func(s *intents.KeySet) { s.Keys = append(s.Keys, next.VerificationKey().ToJWK()) }), intents.OK)
	if r := w.verify(w.export(w.Journal, audit.Selection{}), audit.Options{Trust: w.trust()}); !r.OK {
		t.Errorf("the old key is still in force: %+v", r.FirstBad)
	}
	w.RevokeKey(old)
	if r := w.verify(w.export(w.Journal, audit.Selection{}), audit.Options{Trust: w.trust()}); r.OK || !strings.Contains(r.FirstBad.Reason, "last checkpoint") {
		t.Errorf("signed by a revoked key: %+v", r)
	}
	w.ledgerKey = next
	if r := w.verify(w.export(w.Journal, audit.Selection{Checkpoint: pinned.Checkpoint}), audit.Options{Trust: pinned}); !r.OK {
		t.Errorf("%+v", r.FirstBad)
	}
}

// TestEmptyCheckpointShowsNothing: every log continues an empty one: a checkpoint of no records, which its operator
// can sign at any time, is no beginning, no witness and no pin.
func TestEmptyCheckpointShowsNothing(t *testing.T) {
	w := newWorld(t)
	w.live(1)
	src := w.source(w.Journal)
	empty, err := src.Ledger.CheckpointAt(t.Context(), 0, w.ledgerKey)
	w.Must(err)
	bundle := w.export(w.Journal, audit.Selection{})
	said := func(change func(h *audit.Header)) audit.Report {
		h := header(t, bundle)
		change(&h)
		first, err := json.Marshal(map[string]audit.Header{"bundle": h})
		w.Must(err)
		_, rest, _ := bytes.Cut(bundle, []byte("\n"))
		return w.verify(append(append(first, '\n'), rest...), audit.Options{Trust: w.trust()})
	}
	if r := said(func(*audit.Header) {}); !r.OK {
		t.Fatalf("as it is: %+v", r.FirstBad)
	}
	if r := said(func(h *audit.Header) { h.First, h.Consistency = empty.Note, [][]byte{} }); r.OK || !strings.Contains(r.FirstBad.Reason, "no continuation") {
		t.Errorf("begins with nothing: %+v", r)
	}
	if r := said(func(h *audit.Header) { h.Cosigned, h.Way = empty.Note, nil }); r.OK || !strings.Contains(r.FirstBad.Reason, "cosigned") {
		t.Errorf("cosigned when it was empty: %+v", r)
	}
	pinned := w.trust()
	pinned.Checkpoint = empty.Note
	if r := w.verify(bundle, audit.Options{Trust: pinned}); r.OK || !strings.Contains(r.FirstBad.Reason, "empty log") {
		t.Errorf("pinned when it was empty: %+v", r)
	}
	if _, err := audit.Export(t.Context(), io.Discard, src, audit.Selection{Checkpoint: empty.Note}); err == nil {
		t.Error("exported from an empty log on")
	}
}
