package node

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/datadir"
	"aob.dev/writ/internal/keydir"
	"aob.dev/writ/internal/snapshot"
	"aob.dev/writ/state"
	"aob.dev/writ/storage"
	"aob.dev/writ/storage/sqlite"
	"aob.dev/writ/upkeep"
)

const (
	openedWith = "opened with a snapshot"
	leftOut    = "the snapshot is left out, and all records are read"
)

// atEach record there is a newer snapshot.
var atEach = snapshot.Pace{Every: 1, Bytes: 1 << 40}

// snapshotted is a directory whose log has begun, with a snapshot of its first records
// and some behind it. The node that made it is closed.
func snapshotted(t *testing.T, cfg Config, behind ...func(*Node) error) {
	t.Helper()
	n, err := Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	stop := run(t, n)
	n.snapshots.Pace = atEach
	must(t, tenantPut(t.Context(), n, "before"))
	_, err = n.ledger.Sync(t.Context())
	must(t, err)
	must(t, n.snapshots.Check(t.Context()))
	for _, f := range append(behind, func(n *Node) error { return tenantPut(t.Context(), n, "behind") }) {
		must(t, f(n))
	}
	must(t, errors.Join(stop(), n.Close()))
	if _, err := os.Stat(datadir.Snapshot(cfg.Dir)); err != nil {
		t.Fatal(err)
	}
}

// opening opens a directory, has it take an intent, and checks that its state is what
// the records make. It gives what was told of the snapshot.
func opening(t *testing.T, cfg Config) (with, out int) {
	t.Helper()
	log := newMessages()
	cfg.Log = log.logger()
	n, err := Open(t.Context(), cfg)
	must(t, err)
	stop := run(t, n)
	must(t, tenantPut(t.Context(), n, fmt.Sprint("t", n.journal.Next())))
	if n.checkAll(t.Context()); n.health.Up(conditionAltered) {
		t.Errorf("%+v", n.health.List())
	}
	must(t, errors.Join(stop(), n.Close()))
	return log.count(openedWith), log.count(leftOut)
}

// A node opens with its snapshot and the records behind it, and is what it is when it
// reads all records.
func TestSnapshot(t *testing.T) {
	cfg := config(t.TempDir())
	snapshotted(t, cfg)
	for range 2 {
		if with, out := opening(t, cfg); with != 1 || out != 0 {
			t.Errorf("opened with the snapshot %d times, without it %d", with, out)
		}
	}
	must(t, os.Remove(datadir.Snapshot(cfg.Dir)))
	if with, out := opening(t, cfg); with != 0 || out != 0 {
		t.Errorf("without a snapshot it was opened with it %d times, and left out %d", with, out)
	}
}

// A newer snapshot follows on the one before and the records behind it, once that was
// held to the records.
func TestSnapshotFollows(t *testing.T) {
	cfg := config(t.TempDir())
	snapshotted(t, cfg)
	n := open(t, cfg)
	run(t, n)
	n.snapshots.Pace = atEach
	old, _ := n.snapshots.Last()
	must(t, n.snapshots.Follow(t.Context()))
	if now, _ := n.snapshots.Last(); now != old {
		t.Error("it follows on a snapshot that nobody has held to the records")
	}
	must(t, n.snapshots.Check(t.Context()))
	checked, _ := n.snapshots.Last()
	must(t, tenantPut(t.Context(), n, "more"))
	must(t, n.snapshots.Follow(t.Context()))
	now, _ := n.snapshots.Last()
	if checked == old || now.Next <= checked.Next {
		t.Fatalf("snapshots at %d, %d and %d", old.Next, checked.Next, now.Next)
	}
	must(t, n.snapshots.Check(t.Context())) // it is what the records make

	must(t, os.Remove(datadir.Snapshot(cfg.Dir)))
	must(t, tenantPut(t.Context(), n, "gone"))
	if err := n.snapshots.Follow(t.Context()); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("it follows on a file that is gone: %v", err)
	}
	must(t, n.snapshots.Follow(t.Context()))
	if _, err := os.Stat(datadir.Snapshot(cfg.Dir)); err != nil {
		t.Errorf("none was made in the place of one that is gone: %v", err)
	}
}

// At the least doubt a snapshot is left out, and the node is what its records make.
func TestSnapshotLeftOut(t *testing.T) {
	edit := func(change func([]byte) []byte) func(*testing.T, Config) {
		return func(t *testing.T, cfg Config) {
			t.Helper()
			path := datadir.Snapshot(cfg.Dir)
			raw, err := os.ReadFile(path)
			must(t, err)
			must(t, os.WriteFile(path, change(raw), 0o600))
		}
	}
	whole, other := config(t.TempDir()), config(t.TempDir())
	snapshotted(t, whole)
	snapshotted(t, other)
	for name, c := range map[string]struct {
		behind func(*Node) error
		damage func(*testing.T, Config)
	}{
		"a byte of it is another":  {damage: edit(func(b []byte) []byte { b[len(b)/3] ^= 1; return b })},
		"its end is gone":          {damage: edit(func(b []byte) []byte { return b[:len(b)/2] })},
		"it is empty":              {damage: edit(func([]byte) []byte { return nil })},
		"its signature is another": {damage: edit(func(b []byte) []byte { b[len(b)-3] ^= 1; return b })},
		"somebody else signed it":  {damage: resigned(func(s *signing) { s.key = generated(t, intents.RoleRouter) })},
		"another role signed it":   {damage: resigned(func(s *signing) { s.key = s.keys[intents.RoleManager] })},
		"another build made it":    {damage: resigned(func(s *signing) { s.claims["build"] = strings.Repeat("0", 64) })},
		"it names another place":   {damage: resigned(func(s *signing) { s.claims["position"] = 1 })},
		"its last record differs":  {damage: resigned(func(s *signing) { s.claims["record"] = intents.Digest(nil) })},
		"it is of another log": {damage: func(t *testing.T, cfg Config) {
			t.Helper()
			must(t, os.Rename(datadir.Snapshot(other.Dir), datadir.Snapshot(cfg.Dir)))
		}},
		"its signer is revoked since": {behind: revokeRouter(t)},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := config(t.TempDir())
			if c.behind != nil {
				snapshotted(t, cfg, c.behind)
			} else {
				copyData(t, cfg.Dir, whole.Dir)
				c.damage(t, cfg)
			}
			if with, out := opening(t, cfg); with != 0 || out != 1 {
				t.Errorf("opened with it %d times, left out %d", with, out)
			}
		})
	}
}

// A journal that lost what the snapshot knows is not opened with it.
func TestSnapshotAhead(t *testing.T) {
	cfg := config(t.TempDir())
	snapshotted(t, cfg)
	execute(t, datadir.JournalFile(cfg.Dir), "DELETE FROM records WHERE position >= (SELECT max(position) - 6 FROM records)")
	log := newMessages()
	cfg.Log = log.logger()
	n, err := Open(t.Context(), cfg)
	if err = errors.Join(err, n.close()); err == nil || log.count(leftOut) != 1 {
		t.Errorf("opened: %v, left out %d", err, log.count(leftOut))
	}
}

// A snapshot that the router has signed and that is not what the records make is found
// in the background, removed for good, and the node stops.
func TestForgedSnapshot(t *testing.T) {
	cfg := config(t.TempDir())
	snapshotted(t, cfg)
	snap := readSnapshot(t, cfg)
	contents, err := snap.Contents()
	must(t, err)
	body, err := json.Marshal(state.Control{Catalog: catalog.Builtin().Digest(), Policy: "sha256:another", Revision: 1})
	must(t, err)
	r := storage.NewRecord(storage.KindControl, time.Now(), map[string]json.RawMessage{storage.PartControl: body})
	r.Position = contents.Next() - 1 // no record of the journal
	contents.State.Observe(storage.Entry{Record: r, Target: storage.NoPosition})
	_, err = snapshot.Write(datadir.Snapshot(cfg.Dir), contents, recordAt(t, cfg, contents.Next()-1), keysOf(t, cfg)[intents.RoleRouter])
	must(t, err)

	endsByCheck(t, cfg)
}

// endsByCheck opens a node, whose snapshot its check finds to differ from the records: it removes it
// and stops.
func endsByCheck(t *testing.T, cfg Config) {
	t.Helper()
	n, err := Open(t.Context(), cfg)
	must(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ready, ch := make(chan struct{}), make(chan error, 1)
	go func() { ch <- n.Run(ctx, ready) }()
	select {
	case <-ready:
	case err := <-ch:
		t.Fatal(err)
	}
	n.checkAll(t.Context())
	if err := ended(t, ch); !errors.Is(err, snapshot.ErrDiffers) {
		t.Errorf("it ends with %v", err)
	}
	if _, err := os.Stat(datadir.Snapshot(cfg.Dir)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the snapshot is there: %v", err)
	}
	must(t, n.Close())
}

// TestSnapshotOfNewerKeys: a disk that is put back with its snapshot, and then with the newest keys,
// lacks erasures of records that the snapshot covers. The check finds them, and the next start waits
// until they are signed.
func TestSnapshotOfNewerKeys(t *testing.T) {
	cfg := config(t.TempDir())
	snapshotted(t, cfg)
	files, err := filepath.Glob(filepath.Join(cfg.Dir, sqlite.KeysName, "*"))
	must(t, err)
	for _, file := range files {
		must(t, os.WriteFile(file, make([]byte, 4096*32), 0o600))
	}
	endsByCheck(t, cfg)
	if n := open(t, cfg); !n.health.Up(conditionErasures) {
		t.Errorf("%+v", n.health.List())
	}
}

// Damage beside a record that the snapshot covers is found in the background, and the
// next start reads the record and believes its parts.
func TestSnapshotOverDamage(t *testing.T) {
	cfg := config(t.TempDir())
	snapshotted(t, cfg)
	execute(t, datadir.JournalFile(cfg.Dir), fmt.Sprintf(setFlags, 0, 1))
	n, err := Open(t.Context(), cfg)
	must(t, err)
	stop := run(t, n)
	if snap, _ := n.snapshots.Last(); snap == nil {
		t.Fatal("opened without the snapshot")
	}
	if n.checkAll(t.Context()); !n.health.Up(conditionAltered) {
		t.Error("the damage is not told")
	}
	must(t, errors.Join(stop(), n.Close()))
	if _, err := os.Stat(datadir.Snapshot(cfg.Dir)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the snapshot is there: %v", err)
	}
	if n = open(t, cfg); !n.health.Up(conditionBeside) {
		t.Errorf("the next start did not read the record: %+v", n.health.List())
	}
}

// What an erasure takes away is in no snapshot: the one there is goes before it, and one
// that was begun before is not written.
func TestSnapshotGoesBeforeErasure(t *testing.T) {
	cfg := config(t.TempDir())
	snapshotted(t, cfg)
	n := open(t, cfg)
	run(t, n)
	n.snapshots.Pace = atEach
	must(t, n.snapshots.Check(t.Context()))
	_, erased := n.snapshots.Last()
	must(t, n.erasing().(storage.Eraser).Erase(t.Context(), n.journal.Next()-1))
	if _, err := os.Stat(datadir.Snapshot(cfg.Dir)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the snapshot is there: %v", err)
	}
	must(t, n.snapshots.Write(&snapshot.LocalContents{State: state.New(), Index: sqlite.NewIndex()}, storage.Record{}, n.keys.Now(intents.RoleRouter), erased))
	if last, _ := n.snapshots.Last(); last != nil {
		t.Error("a snapshot of before the erasure was written")
	}
	must(t, n.snapshots.Follow(t.Context()))
	if last, _ := n.snapshots.Last(); last == nil {
		t.Error("no snapshot follows on an erasure")
	}
}

// An erasure that was accepted before the snapshot is looked at by the next start, as
// by one that reads all records: nobody knows whether it was carried out.
func TestSnapshotKnowsErasures(t *testing.T) {
	cfg := config(t.TempDir())
	n, err := Open(t.Context(), cfg)
	must(t, err)
	stop := run(t, n)
	n.snapshots.Pace = atEach
	if err := n.operator(t.Context(), "admin.put", catalog.AdminPut{Tenant: "nowhere", Data: &catalog.Data{Key: "k", Value: json.RawMessage(`1`)}}); err == nil {
		t.Fatal("data of no tenant are accepted")
	}
	refused := all(t, n)[n.journal.Next()-1]
	d, err := intents.ReadDecision(refused.Parts[storage.PartDecision])
	must(t, err)
	must(t, n.operator(t.Context(), state.TypeErase, catalog.RecordErase{
		Tenant: "system", IntentID: d.IntentID, Position: refused.Position, Parts: []string{catalog.ErasesEnvelope}, Reason: "a test",
	}))
	_, err = n.ledger.Sync(t.Context())
	must(t, err)
	must(t, n.snapshots.Check(t.Context()))
	must(t, errors.Join(stop(), n.Close()))
	n = open(t, cfg)
	if snap, _ := n.snapshots.Last(); snap == nil {
		t.Fatal("opened without the snapshot")
	}
	if got := n.directory.Erasing(); len(got) != 1 || got[0].Position != refused.Position {
		t.Errorf("erasures %v", got)
	}
}

// No backup has a snapshot.
func TestBackupHasNoSnapshot(t *testing.T) {
	cfg := config(t.TempDir())
	snapshotted(t, cfg)
	to := filepath.Join(t.TempDir(), "backup")
	if _, err := upkeep.MakeBackup(t.Context(), cfg.Dir, to, true, time.Now()); err != nil {
		t.Fatal(err)
	}
	files := 0
	must(t, filepath.WalkDir(to, func(path string, d fs.DirEntry, err error) error {
		if files++; d.Name() == filepath.Base(datadir.Snapshot("")) {
			t.Errorf("the backup has %s", path)
		}
		return err
	}))
	if files < 2 {
		t.Error("the backup is empty")
	}
}

// signing is how a snapshot is signed anew.
type signing struct {
	keys   keydir.Keys
	key    intents.Signer
	claims map[string]any
}

func resigned(change func(*signing)) func(*testing.T, Config) {
	return func(t *testing.T, cfg Config) {
		t.Helper()
		path := datadir.Snapshot(cfg.Dir)
		raw, err := os.ReadFile(path)
		must(t, err)
		end := bytes.LastIndexByte(raw, '\n') + 1
		s := &signing{keys: keysOf(t, cfg)}
		s.key = s.keys[intents.RoleRouter]
		must(t, intents.PeekClaims(string(raw[end:]), &s.claims))
		change(s)
		token, err := intents.SignCompact(s.key, intents.TypSnapshot, s.claims)
		must(t, err)
		must(t, os.WriteFile(path, append(raw[:end], token...), 0o600))
	}
}

// revokeRouter gives the router a new key and revokes the old one.
func revokeRouter(t *testing.T) func(*Node) error {
	t.Helper()
	return func(n *Node) error {
		keys, err := keydir.Load(datadir.Keys(n.cfg.Dir))
		if err != nil {
			return err
		}
		next := generated(t, intents.RoleRouter)
		if _, err := keydir.Add(datadir.Keys(n.cfg.Dir), next); err != nil {
			return err
		}
		now := n.directory.JWKS()
		set := intents.KeySet{Version: now.Version + 1, Prev: intents.Digest([]byte(now.KeySet)), Keys: append(now.Keys, next.VerificationKey().ToJWK())}
		for i := range now.Keys {
			set.Keys[i].Revoked = set.Keys[i].KID == keys[intents.RoleRouter].KID
		}
		token, err := intents.SignKeySet(keys[intents.RoleRoot], set)
		if err != nil {
			return err
		}
		return n.operator(t.Context(), "key.put", catalog.KeyPut{KeySet: token})
	}
}

func generated(t *testing.T, role intents.Role) intents.Signer {
	t.Helper()
	s, err := intents.GenerateSigner(role)
	must(t, err)
	return s
}

func keysOf(t *testing.T, cfg Config) keydir.Keys {
	t.Helper()
	keys, err := keydir.Load(datadir.Keys(cfg.Dir))
	must(t, err)
	return keys
}

func readSnapshot(t *testing.T, cfg Config) *snapshot.LocalSnapshot {
	t.Helper()
	a, err := datadir.OpenArchive(t.Context(), cfg.Dir)
	must(t, err)
	snap, err := snapshot.Read(datadir.Snapshot(cfg.Dir), intents.RoleRouter, sqlite.ReadIndex)
	must(t, err)
	must(t, errors.Join(snap.Check(t.Context(), a.Journal), a.Close()))
	return snap
}

func recordAt(t *testing.T, cfg Config, position int64) storage.Record {
	t.Helper()
	a, err := datadir.OpenArchive(t.Context(), cfg.Dir)
	must(t, err)
	r, err := a.Journal.Get(t.Context(), position)
	must(t, errors.Join(err, a.Close()))
	return r
}
