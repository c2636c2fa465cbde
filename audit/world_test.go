package audit_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"maps"
	"path/filepath"
	"testing"
	"time"

	"aob.dev/writ/audit"
	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/testing/routertest"
	"aob.dev/writ/policies"
	"aob.dev/writ/state"
	"aob.dev/writ/storage"
	"aob.dev/writ/storage/ledger"
)

// world is a log that a real router has written, with its ledger.
type world struct {
	*routertest.World
	ledgerKey intents.Signer
	blobs     kept
	shelves   storage.Blobs // those of tenants as well; nil: there are none
	logDir    string        // of the last source
}

// kept are blobs of tenant system.
type kept map[string][]byte

func (k kept) put(b []byte) { k["cas://"+intents.Digest(b)] = b }

func (k kept) Fetch(_ context.Context, tenant, ref string) (io.ReadCloser, int64, error) {
	b, there := k[ref]
	if !there || tenant != "system" {
		return nil, 0, storage.ErrNotFound
	}
	return io.NopCloser(bytes.NewReader(b)), int64(len(b)), nil
}

// blobs has only what Export needs.
type blobs struct {
	storage.Blobs
	kept
}

func (b blobs) Fetch(ctx context.Context, tenant, ref string) (io.ReadCloser, int64, error) {
	return b.kept.Fetch(ctx, tenant, ref)
}

// newWorld is a log whose key set has a ledger key from its second version on.
func newWorld(t testing.TB, begin ...state.GenesisData) *world {
	t.Helper()
	held := kept{}
	w := worldOf(routertest.New(t, routertest.Options{Blobs: blobs{routertest.NoBlobs{}, held}, Begin: begin}))
	maps.Copy(held, w.blobs)
	w.blobs = held
	return w
}

func worldOf(of *routertest.World) *world {
	of.Helper()
	w := &world{World: of, blobs: kept{}}
	w.ledgerKey = w.NewKey(intents.RoleLedger)
	w.Want(w.Keys(func(s *intents.KeySet) { s.Keys = append(s.Keys, w.ledgerKey.VerificationKey().ToJWK()) }), intents.OK)
	source := policies.Embedded().Deciding()
	for _, content := range source {
		w.blobs.put(content)
	}
	w.blobs.put(source.Manifest())
	w.blobs.put(catalog.Builtin().Canonical())
	return w
}

// live writes plans with everything that may happen in them: two tenants, new
// keys, refusals of every stage that leaves a record.
func (w *world) live(plans int) {
	w.Helper()
	w.Want(w.Admin("admin.put", catalog.AdminPut{New: &catalog.Tenant{ID: "acme"}}), intents.OK)
	w.Pin("earthquake_feed", catalog.Pure)
	w.Pin("rank", catalog.Idempotent)
	for i := range plans {
		w.plan(i)
		w.Clock.Move(2 * time.Second)
		find := routertest.Intent{By: w.Planner, Type: "skill.find", Args: catalog.SkillFind{Query: "q"}}
		switch i % 8 {
		case 0:
			one, other := w.Sign(find), w.Sign(w.NewPlan(fmt.Sprintf("batched_%d", i)).OpenIntent())
			if b := w.Router.SubmitBatch(w.Context(), fmt.Appendf(nil, `{"atomic":true,"intents":[%s,%s]}`, one, other), 0); b.Code != intents.OK {
				w.Fatalf("%+v", b)
			}
			before := w.Journal.Next()
			stop := w.RunRouter()
			w.Want(w.Send([]byte("{")), intents.SchemaInvalid)
			if stop(); w.Journal.Next() != before+1 {
				w.Fatal("no counter record")
			}
		case 1:
			find.Tenant = "acme"
			w.Want(w.Do(find), intents.OK)
		case 2:
			find.By = w.Manager // not its role
			w.Want(w.Do(find), intents.KeyRole)
		case 3:
			find.Ctx.Labels = map[string]string{"writ.selfproof": "forbidden"}
			w.Want(w.Do(find), intents.PolicyDenied)
		case 4:
			find.Roles = []string{"auditor"}
			w.Want(w.Do(find), intents.RBACForbidden)
		case 5:
			find.Args = map[string]any{"no": "query"}
			w.Want(w.Do(find), intents.SchemaInvalid)
		case 6:
			w.Data("x.limit", fmt.Sprint(i))
		case 7:
			next := w.NewKey(intents.RoleManager)
			w.Want(w.Keys(func(s *intents.KeySet) { s.Keys = append(s.Keys, next.VerificationKey().ToJWK()) }), intents.OK)
			w.RevokeKey(w.Manager)
			w.Manager = next
		}
	}
}

// plan is a turn of one step, whose task goes too far once.
func (w *world) plan(i int) {
	w.Helper()
	p := w.Begun(fmt.Sprintf("plan_%d", i), "earthquake_feed")
	t := p.Started(1)
	w.Want(t.Call("earthquake_feed", `{}`), intents.OK)
	w.OK(t.Intent("exec_python", catalog.ExecPython{Script: fmt.Sprintf("print(%d) # <&>  é", i)}))
	if i%4 == 0 {
		w.Want(t.Call("rank", `{}`), intents.TaskScope)
	}
	key := t.Done()
	if i%4 == 1 {
		w.Want(t.Call("earthquake_feed", `{"again":true}`), intents.KeyRevoked)
	}
	if i%4 == 2 {
		w.Want(w.Do(routertest.Intent{
			By: w.Manager, Type: "plan.get", Args: catalog.PlanGet{PlanID: "plan_0"}, Ctx: intents.Context{PlanID: p.ID},
			Grant: func(g *intents.Grant) { g.For = "plan:" + p.ID },
		}), intents.TaskScope)
	}
	w.Want(p.Read(key), intents.OK)
	w.Want(p.Complete(), intents.OK)
}

// source is the log for an export, after its ledger has been rebuilt over
// the given records.
func (w *world) source(records storage.Records) audit.Source {
	w.Helper()
	dir := filepath.Join(w.TempDir(), "ledger")
	w.logDir = dir
	secret := bytes.Repeat([]byte{9}, 32)
	l, err := ledger.Open(w.Context(), ledger.Config{Dir: dir, Origin: w.Origin, Key: w.ledgerKey, Secret: secret, Records: records, Log: slog.New(slog.DiscardHandler)})
	w.Must(err)
	_, err = l.Sync(w.Context())
	w.Must(errors.Join(err, l.Close()))
	var all storage.Blobs = blobs{kept: w.blobs}
	if w.shelves != nil {
		all = w.shelves
	}
	return audit.Source{
		Origin: w.Origin, Records: records, Ledger: ledger.NewReader(dir, w.Origin), Blobs: all,
		Tags: ledger.NewTags(secret, w.Origin), LedgerKey: w.ledgerKey, RouterKeys: []intents.Signer{w.Signer},
	}
}

func (w *world) export(records storage.Records, sel audit.Selection) []byte {
	w.Helper()
	var out bytes.Buffer
	_, err := audit.Export(w.Context(), &out, w.source(records), sel)
	w.Must(err)
	return out.Bytes()
}

func (w *world) trust() *audit.Trust {
	w.Helper()
	raw, err := json.Marshal(audit.NewTrust(intents.Key{KID: w.Root.KID, Role: intents.RoleRoot, Public: w.Root.Public()}))
	w.Must(err)
	t, err := audit.ReadTrust(raw)
	w.Must(err)
	return t
}

func (w *world) verify(bundle []byte, o audit.Options) audit.Report {
	w.Helper()
	r, err := audit.Verify(w.Context(), bytes.NewReader(bundle), o)
	w.Must(err)
	return r
}

// slice is a source of arbitrary records.
type slice []storage.Record

func (s slice) Next() int64 { return int64(len(s)) }
func (s slice) Get(_ context.Context, p int64) (storage.Record, error) {
	if p < 0 || p >= s.Next() {
		return storage.Record{}, storage.ErrNotFound
	}
	return s[p], nil
}

func (s slice) Scan(_ context.Context, from int64) iter.Seq2[storage.Record, error] {
	return func(yield func(storage.Record, error) bool) {
		for _, r := range s[from:] {
			if !yield(r, nil) {
				return
			}
		}
	}
}

// rewritten is the log with one record changed, salts and all, as only its own
// operator could: the ledger is rebuilt over it.
func (w *world) rewritten(at int64, change func(*storage.Record)) slice {
	out := slice(w.Records())
	r := storage.NewRecord(out[at].Kind, out[at].At, map[string]json.RawMessage{})
	r.Position, r.Erased = at, out[at].Erased
	for name, part := range out[at].Parts {
		r.Parts[name], r.Salts[name] = part, out[at].Salts[name]
	}
	change(&r)
	out[at] = r
	return out
}
