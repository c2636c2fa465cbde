package router

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/state"
	"aob.dev/writ/storage"
)

// retainedBlob is a blob that an erasure leaves, because intents or documents of its tenant hold
// it.
type retainedBlob struct {
	digest    string
	intents   []int64 // positions
	documents bool    // a memory holds it
	unknown   bool    // the intent's arguments are erased, and the blobs that it named are unknown
}

// eraseBlobs removes the existing blobs that the intent's records name, unless another holder in
// its tenant (Holdings) has them: an intent whose blobs were not erased, or a document. The list of
// blobs is stored before the parts of the records that name them are erased. A concurrent intent
// that stores the same bytes and has no record yet loses them.
func (r *Router) eraseBlobs(ctx context.Context, e state.Erasure) ([]retainedBlob, error) {
	if e.User != "" {
		return nil, r.eraseUsersBlobs(ctx, e)
	}
	if !slices.Contains(e.Parts, catalog.ErasesBlobs) {
		return nil, nil
	}
	_, can := r.cfg.Blobs.(storage.Collector)
	if !can || r.cfg.Holdings == nil {
		return nil, errors.New("router: the store of blobs removes none")
	}
	if err := r.cfg.Holdings.Reach(ctx, r.cfg.Records.Next()); err != nil {
		return nil, err
	}
	digests, known, err := r.wanted(ctx, e.Position)
	if err != nil {
		return nil, err
	}
	if !known {
		return []retainedBlob{{unknown: true}}, nil
	}
	return r.dropUnheld(ctx, e.Tenant, digests)
}

// dropUnheld removes blobs of a tenant, and returns those that something holds, which stay. The
// store can remove them.
func (r *Router) dropUnheld(ctx context.Context, tenant string, digests []string) (stay []retainedBlob, err error) {
	collector := r.cfg.Blobs.(storage.Collector) //nolint:forcetypeassert // the callers have looked
	for _, digest := range digests {
		there, err := r.kept(ctx, tenant, digest)
		if err != nil {
			return nil, err
		}
		if !there {
			continue
		}
		held, err := r.heldFor(ctx, tenant, digest)
		if err != nil {
			return nil, err
		}
		if len(held.intents) > 0 || held.documents {
			stay = append(stay, held)
			continue
		}
		if _, err := collector.Drop(ctx, tenant, "cas://"+digest, 0); err != nil {
			return nil, err
		}
	}
	return stay, nil
}

// heldFor returns who holds a blob.
func (r *Router) heldFor(ctx context.Context, tenant, digest string) (retainedBlob, error) {
	s := retainedBlob{digest: digest}
	var err error
	if s.intents, err = r.cfg.Holdings.store.Holders(ctx, tenant, digest); err != nil {
		return s, err
	}
	if r.cfg.Remembered != nil {
		s.documents, err = r.cfg.Remembered(ctx, tenant, digest)
	}
	return s, err
}

// wanted returns the blobs that an erasure of an intent is about. known is false if the parts that
// named them are erased and the digests were not stored before.
func (r *Router) wanted(ctx context.Context, position int64) (digests []string, known bool, err error) {
	store := r.cfg.Holdings.store
	if digests, known, err = store.WantedBlobs(ctx, position); known || err != nil {
		return digests, known, err
	}
	digests, whole, err := r.named(ctx, position)
	if err != nil || !whole {
		return nil, false, err
	}
	return digests, true, store.Want(ctx, position, digests)
}

// holderTexts says which blobs stay and why.
func holderTexts(stay []retainedBlob) string {
	var blobs []string
	for i, s := range stay {
		if s.unknown {
			blobs = append(blobs, "which ones the intent named is not known any more: erase the blobs of the intents that hold them")
			continue
		}
		if i == maxListed {
			blobs = append(blobs, fmt.Sprintf("%d more", len(stay)-i))
			break
		}
		var holders []string
		for _, at := range s.intents[:min(len(s.intents), maxListed)] {
			holders = append(holders, fmt.Sprintf("the intent at position %d", at))
		}
		if more := len(s.intents) - maxListed; more > 0 {
			holders = append(holders, fmt.Sprintf("%d more intents", more))
		}
		if s.documents {
			holders = append(holders, "a memory")
		}
		blobs = append(blobs, "cas://"+s.digest+" is held by "+strings.Join(holders, ", "))
	}
	return "the erasure is accepted, and blobs stay: " + strings.Join(blobs, "; ")
}

// eraseHolders is the hint for retained blobs.
const eraseHolders = "erase the blobs of the intents that hold them (writ intent erase INTENT_ID --parts blobs --reason TEXT; a memory goes when its time is over), then send the same command again: it says when all is gone"

// maxListed bounds the lists in a message.
const maxListed = 5

// named returns all digests in an intent's record and in its outcome's. whole is false if one of
// them has lost parts.
func (r *Router) named(ctx context.Context, position int64) (digests []string, whole bool, err error) {
	records := []int64{position}
	h, err := r.cfg.Journal.Holder(ctx, position)
	switch {
	case err == nil && h.State == storage.StateDone:
		records = append(records, h.Outcome)
	case err != nil && !errors.Is(err, storage.ErrNotFound):
		return nil, false, err
	}
	for _, at := range records {
		rec, err := r.cfg.Records.Get(ctx, at)
		if err != nil || len(rec.Erased) > 0 {
			return nil, false, err
		}
		digests = append(digests, rec.Digests()...)
	}
	slices.Sort(digests)
	return slices.Compact(digests), true, nil
}

// kept reports whether a tenant has a blob.
func (r *Router) kept(ctx context.Context, tenant, digest string) (bool, error) {
	f, _, err := r.cfg.Blobs.Fetch(ctx, tenant, "cas://"+digest)
	if errors.Is(err, storage.ErrNotFound) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return true, f.Close()
}
