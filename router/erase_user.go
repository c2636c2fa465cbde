package router

import (
	"bytes"
	"cmp"
	"context"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/clock"
	"aob.dev/writ/state"
	"aob.dev/writ/storage"
)

// eraseUserTime bounds one attempt to erase a user.
const eraseUserTime = 10 * time.Minute

// usersRecords are what a user.erase is about: the records of a user before a position.
type usersRecords struct {
	lose     []int64         // records that lose parts
	blobs    map[string]bool // that erasable intents hold
	holders  []int64         // those intents
	erased   int64           // intents that lose their envelope
	retained map[catalog.RetainedIntents]int64

	next int64
	open map[int64]bool // intents whose outcome was not read yet; whether they may be erased
}

// follow reads on, up to a position.
func (u *usersRecords) follow(ctx context.Context, records storage.Records, tenant, user string, before int64) error {
	for rec, err := range records.Scan(ctx, u.next) {
		if err != nil {
			return err
		}
		if rec.Position >= before {
			return nil
		}
		if err := u.read(ctx, records, rec, tenant, user); err != nil {
			return err
		}
		u.next = rec.Position + 1
	}
	return nil
}

func (u *usersRecords) read(ctx context.Context, records storage.Records, rec storage.Record, tenant, user string) error {
	erasable := false
	switch rec.Kind { //nolint:exhaustive // the others have nothing that can be erased
	case storage.KindIntent:
		if !bytes.Contains(rec.Parts[storage.PartSummary], []byte(user)) && !bytes.Contains(rec.Parts[storage.PartEnvelope], []byte(user)) {
			return nil // most records: no need to read more
		}
		o, err := state.ReadIntent(rec)
		if err != nil || o.Tenant != tenant || o.User != user {
			return err
		}
		if erasable = state.Erasable(o); erasable {
			u.erased++
			u.lose = append(u.lose, rec.Position)
		} else {
			why := catalog.RetainedJudged
			if o.Decision.Verdict == intents.Hold {
				why = catalog.RetainedHeld
			}
			u.retained[catalog.RetainedIntents{Type: o.Type, Why: why}]++
		}
		if o.Decision.Verdict != intents.Deny {
			u.open[rec.Position] = erasable
		}
	case storage.KindOutcome:
		f, _ := storage.Follow(rec)
		var found bool
		if erasable, found = u.open[f.Target]; !found {
			return nil
		}
		delete(u.open, f.Target)
		u.lose = append(u.lose, rec.Position)
	}
	if !erasable {
		return nil
	}
	held, err := heldBy(ctx, records, rec)
	for _, h := range held {
		u.blobs[h.Digest] = true
		u.holders = append(u.holders, h.Position)
	}
	return err
}

// users remembers what was read of one user, so that an erasure reads the journal once.
type users struct {
	mu   sync.Mutex // guards the others
	name string     // "tenant/user_id"
	last *usersRecords
}

// of are the records of a user before a position.
func (u *users) of(ctx context.Context, records storage.Records, tenant, user string, before int64) (usersRecords, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if name := tenant + "/" + user; u.name != name || u.last == nil || u.last.next > before {
		u.name, u.last = name, &usersRecords{blobs: map[string]bool{}, retained: map[catalog.RetainedIntents]int64{}, open: map[int64]bool{}}
	}
	err := u.last.follow(ctx, records, tenant, user, before)
	out := *u.last
	out.lose, out.blobs, out.retained, out.open = slices.Clone(out.lose), maps.Clone(out.blobs), maps.Clone(out.retained), nil
	return out, err
}

// forget what was read.
func (u *users) forget() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.name, u.last = "", nil
}

// result counts what goes and what stays.
func (u *usersRecords) result() catalog.UserEraseResult {
	out := catalog.UserEraseResult{Accepted: true, Intents: u.erased, Erased: u.erased, Retained: []catalog.RetainedIntents{}, Remaining: catalog.UserRemaining()}
	for x, n := range u.retained {
		x.Intents = n
		out.Intents += n
		out.Retained = append(out.Retained, x)
	}
	slices.SortFunc(out.Retained, func(a, b catalog.RetainedIntents) int {
		return cmp.Or(cmp.Compare(a.Type, b.Type), cmp.Compare(a.Why, b.Why))
	})
	return out
}

// mayEraseUser is mayErase of a user.erase: the user has records, and the journal can erase them.
// The state has judged that they have ended.
func (r *Router) mayEraseUser(ctx context.Context, d *decision) error {
	a, err := argsOf[catalog.UserErase](d.env)
	if err != nil {
		return err
	}
	if _, can := r.cfg.Journal.(storage.Eraser); !can {
		return illegal("/intent/args", "the journal of this log cannot erase")
	}
	u, err := r.users.of(ctx, r.cfg.Records, state.TargetTenant(d.env.Principal().Tenant, a.Tenant), a.UserID, r.cfg.Records.Next())
	if err != nil {
		return err
	}
	result := u.result()
	if result.Intents == 0 {
		return illegal("/intent/args/user_id", "no intent of this tenant is of this user")
	}
	d.result.Result = result
	return nil
}

// eraseUsersBlobs removes the blobs that only erasable intents of a user hold.
func (r *Router) eraseUsersBlobs(ctx context.Context, e state.Erasure) error {
	if _, can := r.cfg.Blobs.(storage.Collector); !can || r.cfg.Holdings == nil || e.Tenant == "system" {
		return nil
	}
	if err := r.cfg.Holdings.Reach(ctx, r.cfg.Records.Next()); err != nil {
		return err
	}
	digests, known, err := r.cfg.Holdings.store.WantedBlobs(ctx, e.Position)
	if err != nil {
		return err
	}
	if !known {
		u, err := r.users.of(ctx, r.cfg.Records, e.Tenant, e.User, e.Position)
		if err != nil {
			return err
		}
		digests = slices.Sorted(maps.Keys(u.blobs))
		if err := r.cfg.Holdings.store.Want(ctx, e.Position, digests); err != nil {
			return err
		}
	}
	_, err = r.dropUnheld(ctx, e.Tenant, digests)
	return err
}

// eraseUserFor executes an accepted user.erase. The answer is not done before everything is gone,
// documents too; one that takes longer is in flight, and goes on.
func (r *Router) eraseUserFor(ctx context.Context, env *intents.Envelope) error {
	a, err := argsOf[catalog.UserErase](env)
	if err != nil {
		return err
	}
	tenant := state.TargetTenant(env.Principal().Tenant, a.Tenant)
	done := make(chan error, 1)
	r.running.Go(func() {
		ctx := clock.Lasting(ctx)
		r.erasing.Lock()
		pending := slices.DeleteFunc(r.state.Erasing(), func(e state.Erasure) bool { return e.Tenant != tenant || e.User != a.UserID })
		_, err := r.erase(ctx, pending...)
		r.erasing.Unlock()
		if err == nil && r.cfg.Documented != nil {
			late, cancel := context.WithTimeout(ctx, eraseWait)
			defer cancel()
			err = r.cfg.Documented(late, r.cfg.Records.Next())
		}
		done <- err
	})
	late := time.NewTimer(eraseWait)
	defer late.Stop()
	select {
	case err = <-done:
		if err == nil {
			return nil
		}
		r.cfg.Log.WarnContext(ctx, "an accepted erasure waits", slog.String("error", err.Error()))
	case <-late.C:
	}
	return underWay("", "accepted, and not all of it is gone yet", eraseWaits)
}
