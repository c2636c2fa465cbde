package measure

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"aob.dev/writ/bus"
	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/keydir"
	"aob.dev/writ/policies"
	"aob.dev/writ/router"
	"aob.dev/writ/state"
	"aob.dev/writ/storage"
	"aob.dev/writ/storage/blobdir"
	"aob.dev/writ/storage/ledger"
	"aob.dev/writ/storage/sqlite"
)

const tenant = "default"

// skills that are pinned in the world and named by its plans.
var skills = []string{"outlet_list", "order_history"}

// world is a log with a genesis, a router over it, and turns whose intents it takes. All
// are the product's own parts, in a temporary directory.
type world struct {
	dir     string
	keys    keydir.Keys
	journal journalOf
	config  router.Config
	router  *router.Router
	turns   []turn
	signed  atomic.Int64                  // intents so far
	written atomic.Pointer[ledger.Ledger] // that follows the journal; nil: none does
}

// journalOf is a journal of any driver, and opening opens one.
type (
	journalOf interface {
		storage.Journal
		storage.Records
		Close() error
	}
	opening func(storage.Observer) (journalOf, error)
)

// turn is one user's turn with a running task.
type turn struct {
	user, session, id, plan string
	task                    intents.Signer
	grant                   string
	opened                  time.Time
}

// newWorld is a log in SQLite below dir; see newWorldOn.
func newWorld(ctx context.Context, dir string, now func() time.Time) (*world, error) {
	return newWorldOn(ctx, dir, now, func(o storage.Observer) (journalOf, error) {
		return sqlite.OpenJournal(ctx, filepath.Join(dir, "journal"), sqlite.JournalOptions{Observer: o})
	})
}

// newWorldOn makes the genesis of a log; start makes it take intents.
func newWorldOn(ctx context.Context, dir string, now func() time.Time, open opening) (w *world, err error) {
	w = &world{dir: dir}
	defer func() {
		if err != nil {
			err = errors.Join(err, w.close())
		}
	}()
	if w.keys, err = keydir.Create(filepath.Join(dir, "keys")); err != nil {
		return w, err
	}
	engine, err := policies.New(policies.Embedded())
	if err != nil {
		return w, err
	}
	directory := state.New()
	journal, err := open(func(e storage.Entry) {
		directory.Observe(e)
		if l := w.written.Load(); l != nil {
			l.Wake()
		}
	})
	if err != nil {
		return w, err
	}
	w.journal = journal
	blobs, err := blobdir.Open(filepath.Join(dir, "blobs"))
	if err != nil {
		return w, err
	}
	w.config = router.Config{
		Journal: w.journal, Records: w.journal, State: directory, Blobs: blobs, Key: w.keys[intents.RoleRouter], KeySecret: make([]byte, 32),
		Policy: policies.NewLive(engine.WithoutDeadline()), Now: now, Log: slog.New(slog.DiscardHandler),
		Rates: router.Rates{Signer: -1, Tenant: -1}, // one signer is all the load there is
	}
	if err := w.keepVersions(ctx); err != nil {
		return w, err
	}
	token, err := state.NewGenesis(w.keys[intents.RoleRoot], w.keys.KeySet(), engine.Digest(), nil)
	if err != nil {
		return w, err
	}
	return w, router.Begin(ctx, w.journal, token, now())
}

// start makes the router, over a bus where intents are dispatched, pins the
// skills and opens n turns.
func (w *world) start(ctx context.Context, conn bus.Conn, n int) (err error) {
	w.config.Bus = conn
	if w.router, err = router.New(w.config); err != nil {
		return err
	}
	if err := w.router.Start(ctx); err != nil {
		return err
	}
	for _, s := range skills {
		approve := catalog.SkillApprove{Tenant: tenant, Skill: s, Digest: intents.Digest([]byte(s)), Effect: catalog.Pure}
		if _, err := w.submit(ctx, intents.RoleOperator, turn{}, "skill.approve", approve, intents.OK); err != nil {
			return err
		}
	}
	for i := range n {
		t, err := w.open(ctx, i)
		if err != nil {
			return err
		}
		w.turns = append(w.turns, t)
	}
	return nil
}

func (w *world) close() error {
	if w.journal == nil {
		return nil
	}
	return w.journal.Close()
}

// open opens a turn: a plan with a running task.
func (w *world) open(ctx context.Context, i int) (t turn, err error) {
	name := fmt.Sprintf("%08x", i*2654435761)
	t = turn{user: fmt.Sprintf("u_%08x", i/turnsPerUser), session: "sess_" + name, id: "turn_" + name, opened: w.config.Now()}
	t.plan = intents.TimedID(intents.KindPlan, t.opened, name)
	if t.task, err = intents.GenerateSigner(intents.RoleTask); err != nil {
		return t, err
	}
	if t.grant, err = w.issueGrant(t); err != nil {
		return t, err
	}
	if _, err := w.submit(ctx, intents.RoleGateway, t, "plan.open", catalog.PlanOpen{PlanID: t.plan, Task: "Which outlets sold most last week?"}, intents.OK); err != nil {
		return t, err
	}
	if _, err := w.submit(ctx, intents.RoleManager, t, "plan.claim", catalog.PlanClaim{PlanID: t.plan, Epoch: 1, Driver: "drv_" + name}, intents.OK); err != nil {
		return t, err
	}
	spec := catalog.ReturnSpec{Shape: "array<{outlet_id, score, rank}>", Reason: "the answer ranks outlets"}
	digest, err := w.submit(ctx, intents.RolePlanner, t, "plan", catalog.Plan{PlanID: t.plan, Epoch: 1, Revision: 1, Steps: []catalog.PlanStep{
		{Step: 1, Task: "List the outlets that were active last week", Skills: skills, ReturnSpec: spec},
		{Step: 2, Task: "Rank them by what they sold", Skills: skills[:1], Inputs: []int{1}, ReturnSpec: spec},
	}}, intents.OK)
	if err != nil {
		return t, err
	}
	step := catalog.Step{
		PlanID: t.plan, PlanDigest: digest, Step: 1, Epoch: 1, TaskID: t.taskID(), JWK: t.task.VerificationKey().ToJWK(),
		Deadline: intents.FormatTime(w.config.Now().Add(state.MaxTaskLife)),
	}
	if step.PoP, err = intents.SignPoP(t.task, step); err != nil {
		return t, err
	}
	_, err = w.submit(ctx, intents.RoleManager, t, "step", step, intents.OK)
	return t, err
}

func (t turn) taskID() string { return intents.TimedID(intents.KindTask, t.opened, t.id) }

// issueGrant makes a fresh grant for a turn.
func (w *world) issueGrant(t turn) (string, error) {
	now, origin := w.config.Now(), w.config.State.Origin()
	return intents.IssueGrant(w.keys[intents.RoleGateway], intents.Grant{
		Issuer: origin, Audience: origin, Subject: t.user, Tenant: tenant,
		Roles: []string{"user"}, Act: intents.Act{Client: "bench", AMR: []string{"api_key"}}, Session: t.session, Turn: t.id,
		IssuedAt: now.Unix(), Expires: now.Add(intents.MaxGrantLife).Unix(), ID: "grant_" + t.id,
	})
}

// sign makes an intent of a turn, ready to submit. Every intent has an
// idempotency key of its own. Safe for concurrent use.
func (w *world) sign(role intents.Role, t turn, typ string, args any) (raw []byte, id string, err error) {
	n := w.signed.Add(1)
	encoded, err := json.Marshal(args)
	if err != nil {
		return nil, "", err
	}
	body := intents.Body{
		Version: intents.Version, Intent: intents.Spec{Type: typ, Args: encoded},
		Constraints: intents.Constraints{
			IssuedAt: intents.FormatTime(w.config.Now()), TTLSec: 120, Audience: w.config.State.Origin(),
			IdempotencyKey: intents.Digest(fmt.Append(nil, n)),
		},
		TraceID: fmt.Sprintf("%032x", n),
	}
	key := w.keys[role]
	switch role {
	case intents.RoleOperator:
		body.Actor = intents.Actor{UserID: "local", Tenant: "system"}
		return intents.Sign(key, body)
	case intents.RoleTask:
		key = t.task
		body.Context = &intents.Context{SessionID: t.session, TurnID: t.id, PlanID: t.plan, Revision: 1, Step: 1, TaskID: t.taskID()}
	default:
		body.Context = &intents.Context{SessionID: t.session, TurnID: t.id, PlanID: t.plan}
	}
	body.Actor = intents.Actor{UserID: t.user, Tenant: tenant, Grant: t.grant}
	return intents.Sign(key, body)
}

// submit has an intent decided as it should be, and carried out, and gives its intent_id.
func (w *world) submit(ctx context.Context, role intents.Role, t turn, typ string, args any, want intents.Code) (string, error) {
	raw, id, err := w.sign(role, t, typ, args)
	if err != nil {
		return "", err
	}
	a, err := w.router.Submit(ctx, raw)
	if err != nil {
		return "", fmt.Errorf("%s: %w", typ, err)
	}
	if a.Code != want {
		return "", fmt.Errorf("%s: %s %s: %s, and should be %s", typ, a.Code, a.Pointer, a.Reason, want)
	}
	return id, nil
}

// within runs fn with a temporary directory that is removed after it.
func within(fn func(dir string) ([]Row, error)) ([]Row, error) {
	dir, err := os.MkdirTemp("", "writ-bench-")
	if err != nil {
		return nil, err
	}
	rows, err := fn(dir)
	return rows, errors.Join(err, os.RemoveAll(dir))
}
