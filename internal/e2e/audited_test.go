package e2e

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"hash/crc32"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"aob.dev/writ/agentic/model/offline"
	"aob.dev/writ/audit"
	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/datadir"
	"aob.dev/writ/internal/node"
	"aob.dev/writ/state"
	"aob.dev/writ/storage"
	"aob.dev/writ/upkeep"
)

// second asks the other implementation of the auditor about a bundle, where there is one.
var second func(t *testing.T, trust, bundle []byte)

// cancelAll cancels whatever is open, as its user would.
func (s *system) cancelAll(ctx context.Context) {
	s.t.Helper()
	key, err := intents.ReadKey(filepath.Join(s.dir, "keys", "gateway.pem"), intents.RoleGateway)
	if err != nil {
		s.t.Error(err)
		return
	}
	dir := s.node.State()
	for _, tenant := range dir.Tenants() {
		for _, id := range dir.OpenPlanIDs(tenant) {
			p, _, there := dir.PlanWithoutTexts(tenant, id)
			if !there {
				continue
			}
			now := s.Now()
			grant, err := intents.IssueGrant(key, intents.Grant{
				Issuer: s.node.Origin(), Audience: s.node.Origin(), Subject: p.UserID, Tenant: tenant, Roles: []string{"user"},
				Act: intents.Act{Client: "test", AMR: []string{"none"}}, IssuedAt: now.Unix(), Expires: now.Add(time.Minute).Unix(), ID: "end_" + id,
			})
			if err != nil {
				s.t.Error(err)
				return
			}
			raw, _ := json.Marshal(catalog.Cancel{PlanID: id}) // plain data
			signed, _, err := intents.Sign(key, intents.Body{
				Version: intents.Version, Intent: intents.Spec{Type: state.TypeCancel, Args: raw}, Actor: intents.Actor{UserID: p.UserID, Tenant: tenant, Roles: []string{"user"}, Grant: grant},
				Constraints: intents.Constraints{IssuedAt: intents.FormatTime(now), TTLSec: 60, Audience: s.node.Origin(), IdempotencyKey: catalog.RandomKey()},
			})
			if err != nil {
				s.t.Error(err)
				return
			}
			_, _ = s.node.Router().Submit(ctx, signed) // refused where it has ended meanwhile, or its user may do nothing any more
		}
	}
}

// audited ends a test with the audit of what it has left: everything open is cancelled and the node
// stopped; the data directory is sound, what it has in memory is what its records make, the whole log
// verifies and comes out the same when it is decided again, a node opens the directory again, and, of
// one test in four, a backup of it can be restored. Under the race detector, which makes these twelve times slower, the directory is
// only checked.
func (s *system) audited(stop func() error) {
	s.t.Helper()
	ctx := context.WithoutCancel(s.t.Context())
	if s.t.Failed() || s.Unaudited != "" {
		if err := stop(); err != nil {
			s.t.Errorf("node: %v", err)
		}
		return
	}
	s.cancelAll(ctx)
	if err := stop(); err != nil {
		s.t.Errorf("node: %v", err)
		return
	}
	if err := s.sameState(ctx); err != nil {
		s.t.Error(err)
	}
	s.sound(ctx)
}

// sound checks an unused data directory with every reader.
func (s *system) sound(ctx context.Context) {
	s.t.Helper()
	h, err := upkeep.Fsck(ctx, s.dir, nil)
	if err != nil || !h.OK || len(h.SetAside) > 0 {
		s.t.Errorf("fsck: %v, %v, set aside %v", err, h.FirstBad, h.SetAside)
	}
	if raced {
		return
	}
	err = errors.Join(s.verifies(ctx), s.opens(ctx))
	if crc32.ChecksumIEEE([]byte(s.t.Name()))%4 == 0 || os.Getenv("WRIT_CAMPAIGN") != "" { // of one test in four
		err = errors.Join(err, s.restores(ctx))
	}
	if err != nil {
		s.t.Error(err)
	}
}

// restores a backup, which is checked as the directory was.
func (s *system) restores(ctx context.Context) error {
	if documents(s.dir).URL != "" {
		return nil // they are no part of a backup
	}
	to := filepath.Join(s.t.TempDir(), "backup")
	if _, err := upkeep.MakeBackup(ctx, s.dir, to, true, time.Now()); err != nil {
		return err
	}
	keys := filepath.Join(s.t.TempDir(), "erasable")
	if _, err := upkeep.CopyKeys(ctx, s.dir, keys, time.Now()); err != nil {
		return err
	}
	r, err := upkeep.Restore(ctx, to, filepath.Join(s.t.TempDir(), "restored"), "", keys)
	if err == nil && !r.Verified {
		err = errors.New("the backup is not sound: " + r.Health.FirstBad.Error())
	}
	return err
}

// sameState compares what the node had in memory with what its records make.
func (s *system) sameState(ctx context.Context) error {
	a, err := datadir.OpenArchive(ctx, s.dir)
	if err != nil {
		return err
	}
	defer a.Close()
	made, err := datadir.RebuildState(ctx, a.Records)
	if err != nil {
		return err
	}
	next, was, err := s.node.State().Digest()
	if err != nil {
		return err
	}
	if now, is, err := made.Digest(); err != nil || now != next || is != was {
		return errors.Join(errors.New("the state in memory is not what the records make"), err)
	}
	return nil
}

// opens the directory as the next start would.
func (s *system) opens(ctx context.Context) error {
	n, err := node.Open(ctx, node.Config{Dir: s.dir, Documents: documents(s.dir), Agents: s.Agents, Model: offline.Model{}, Now: s.Now, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	return n.Close()
}

// verifies the log, whole, and decides it again.
func (s *system) verifies(ctx context.Context) error {
	a, err := datadir.OpenArchive(ctx, s.dir)
	if err != nil {
		return err
	}
	defer a.Close()
	var bundle bytes.Buffer
	w := bufio.NewWriter(&bundle)
	if _, err := audit.Export(ctx, w, a.Source, audit.Selection{}); err != nil {
		return err
	}
	if err := w.Flush(); err != nil {
		return err
	}
	trust := audit.NewTrust(a.Root)
	r, err := audit.Verify(ctx, bytes.NewReader(bundle.Bytes()), audit.Options{Trust: &trust, Replay: true})
	if err != nil {
		return err
	}
	if !r.OK {
		bad, _ := a.Records.Get(ctx, r.FirstBad.Position)
		s.t.Errorf("not valid: %v: %s", r.FirstBad, bad.Parts[storage.PartDecision])
	}
	if second != nil {
		raw, err := json.Marshal(trust)
		if err != nil {
			return err
		}
		second(s.t, raw, bundle.Bytes())
	}
	return nil
}
