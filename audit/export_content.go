package audit

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"slices"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/policies"
	"aob.dev/writ/state"
	"aob.dev/writ/storage"
	"aob.dev/writ/storage/ledger"
)

// effective: a router intent that took effect at its own position.
func (o *intent) effective() bool {
	return o.decision.Verdict == intents.Allow && routers(o.decision)
}

// restsOn reports whether later records depend on a record, whosever they are: keys
// and directory of system and of the tenant, and the tenant's plans and steps.
func (it *item) restsOn(of string) bool {
	return it.control != nil || it.intent != nil && it.intent.effective() && it.intent.actsOn(of)
}

// actsOn reports whether a router intent, if it takes effect, is one that
// records of a tenant depend on.
func (o *intent) actsOn(of string) bool {
	actor, args := o.body.Actor.Tenant, o.body.Intent.Args
	switch o.body.Intent.Type {
	case "key.put", "policy.push":
		return true // every tenant's
	case state.TypeErase, state.TypeUserErase:
		a, err := unmarshal[struct {
			Tenant string `json:"tenant"`
		}](args)
		return err != nil || of == "" || state.TargetTenant(actor, a.Tenant) == of
	case "admin.put", catalog.TypeAdminStop, "skill.approve", "grant.revoke", state.TypeRegistryPush:
		var a struct {
			Tenant string          `json:"tenant"`
			New    *catalog.Tenant `json:"new_tenant"`
		}
		if json.Unmarshal(args, &a) != nil {
			return true
		}
		on := state.TargetTenant(actor, a.Tenant)
		if a.New != nil {
			on = a.New.ID
		}
		return of == "" || on == of || on == ledger.SystemTenant
	default:
		return of == "" || actor == of
	}
}

// memory is what an exporter retains of held router intents that records depend on.
type memory struct {
	held    map[string]bool // by intent_id
	release map[int64]bool  // by position
}

// ofHeld reports whether later records depend on a held router intent, on what
// people decided about it, or on its release, at which it takes effect.
func (s *memory) ofHeld(it *item, of string) bool {
	o := it.intent
	switch {
	case it.release != nil:
		return s.release[it.target]
	case o == nil || !routers(o.decision):
		return false
	case o.decision.Verdict == intents.Hold && o.actsOn(of):
		s.held[o.decision.IntentID], s.release[it.Position] = true, true
		return true
	case o.decision.Verdict == intents.Allow && o.body.Intent.Type == state.TypeApprove:
		a, err := unmarshal[catalog.Approve](o.body.Intent.Args)
		return err == nil && s.held[a.IntentID]
	default:
		return false
	}
}

// blob writes the lines of something that decided, once. What was not stored is left
// out, and its decisions cannot be replayed.
func (x *exporter) blob(ctx context.Context, digest string) (lines []line, err error) {
	if digest == "" || x.blobs[digest] {
		return nil, nil
	}
	x.blobs[digest] = true
	data, err := fetch(ctx, x.Blobs, digest)
	if errors.Is(err, storage.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var files map[string]string // the file list of a policy or a registry names its files, which name none
	if json.Unmarshal(data, &files) == nil {
		for _, name := range slices.Sorted(maps.Keys(files)) {
			if !intents.IsDigest(files[name]) {
				continue
			}
			more, err := x.blob(ctx, files[name])
			if err != nil {
				return nil, err
			}
			lines = append(lines, more...)
		}
	}
	return append(lines, line{Blob: &Blob{Digest: digest, Data: data}}), nil
}

// fetch reads a blob of tenant system by digest.
func fetch(ctx context.Context, blobs storage.Blobs, digest string) ([]byte, error) {
	return storage.ReadSystem(ctx, blobs, digest)
}

// blob reads one of a tenant by its digest.
func (s Source) blob(ctx context.Context) func(tenant, digest string) ([]byte, error) {
	return func(tenant, digest string) ([]byte, error) {
		f, _, err := s.Blobs.Fetch(ctx, tenant, "cas://"+digest)
		if err != nil {
			return nil, err
		}
		data, err := io.ReadAll(io.LimitReader(f, policies.MaxInputSize))
		return data, errors.Join(err, f.Close())
	}
}
