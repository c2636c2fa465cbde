package ledger_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/transparency-dev/tessera/api"
	"github.com/transparency-dev/tessera/client"
	"github.com/transparency-dev/tessera/fsck"
	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"

	"aob.dev/writ/intents"
	"aob.dev/writ/internal/testing/journaltest"
	"aob.dev/writ/storage"
	"aob.dev/writ/storage/ledger"
)

// at is the time of every record.
var at = time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)

func must[T any](t testing.TB) func(v T, err error) T {
	t.Helper()
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// intentRecord is an intent of a tenant, as far as the ledger reads one.
func intentRecord(tenant string, n int) storage.Record {
	payload := fmt.Sprintf(`{"actor":{"tenant":%q,"user_id":"u"},"n":%d}`, tenant, n)
	signed, err := json.Marshal(intents.Signed{Header: "h", Payload: payload, Sig: "s"})
	if err != nil {
		panic(err)
	}
	return storage.NewRecord(storage.KindIntent, at.Add(time.Duration(n)*time.Millisecond), map[string]json.RawMessage{storage.PartEnvelope: signed})
}

// commit appends an intent that ends in its own commit: two records.
func commit(ctx context.Context, j storage.Journal, tenant string, n int) error {
	out := storage.NewRecord(storage.KindOutcome, at, map[string]json.RawMessage{storage.PartOutcome: json.RawMessage(`{"of":-1}`)})
	res, err := j.Commit(ctx, storage.Commit{ID: fmt.Sprint("c", n), Entries: []storage.Entry{
		{Record: intentRecord(tenant, n), Holder: storage.NoPosition, Target: storage.NoPosition},
		{Record: out, TargetPrevious: true, Target: storage.NoPosition},
	}})
	if err == nil && res.Verdict != storage.Won {
		err = fmt.Errorf("verdict %d", res.Verdict)
	}
	return err
}

// world is a ledger over a journal, with the key that checkpoints are signed with.
type world struct {
	t      *testing.T
	cfg    ledger.Config
	ledger *ledger.Ledger
	ended  chan error
	stop   context.CancelFunc
}

func newWorld(t *testing.T, records storage.Records) *world {
	t.Helper()
	key := must[intents.Signer](t)(intents.GenerateSigner(intents.RoleLedger))
	return &world{t: t, cfg: ledger.Config{
		Dir: filepath.Join(t.TempDir(), "ledger"), Origin: "writ/test", Key: key,
		Secret: bytes.Repeat([]byte{7}, 32), Records: records, Log: slog.New(slog.DiscardHandler),
	}}
}

func (w *world) start() {
	w.t.Helper()
	w.ledger = must[*ledger.Ledger](w.t)(ledger.Open(w.t.Context(), w.cfg))
	ctx, stop := context.WithCancel(context.WithoutCancel(w.t.Context()))
	w.stop, w.ended = stop, make(chan error, 1)
	go func() { w.ended <- w.ledger.Run(ctx) }()
}

func (w *world) end() {
	w.t.Helper()
	w.stop()
	if err := errors.Join(<-w.ended, w.ledger.Close()); err != nil {
		w.t.Fatal(err)
	}
}

// published waits for a checkpoint of so many leaves.
func (w *world) published(size int64) ledger.Checkpoint {
	w.t.Helper()
	w.ledger.Wake()
	ctx, cancel := context.WithTimeout(w.t.Context(), time.Minute)
	defer cancel()
	return must[ledger.Checkpoint](w.t)(w.ledger.WaitPublished(ctx, size))
}

func (w *world) verifier() note.Verifier {
	w.t.Helper()
	vkey := must[string](w.t)(ledger.VKey(w.cfg.Origin, w.cfg.Key.Public()))
	return must[note.Verifier](w.t)(note.NewVerifier(vkey))
}

// fsck is Tessera's own judge of a directory.
func (w *world) fsck() error {
	return fsck.New(w.cfg.Origin, w.verifier(), client.FileFetcher{Root: w.cfg.Dir}, hashes, fsck.Opts{N: 2}).Check(w.t.Context())
}

func hashes(bundle []byte) ([][]byte, error) {
	var b api.EntryBundle
	if err := b.UnmarshalText(bundle); err != nil {
		return nil, err
	}
	var out [][]byte
	for _, e := range b.Entries {
		out = append(out, ledger.LeafHash(e))
	}
	return out, nil
}

// check holds every leaf to its record.
func (w *world) check(records storage.Records, size int64) {
	w.t.Helper()
	leaves := must[[][]byte](w.t)(ledger.NewReader(w.cfg.Dir, w.cfg.Origin).Leaves(w.t.Context(), 0, size, size))
	tags := ledger.NewTags(w.cfg.Secret, w.cfg.Origin)
	tenants := ledger.NewTenants(records)
	i := int64(0)
	for rec, err := range records.Scan(w.t.Context(), 0) {
		if err != nil {
			w.t.Fatal(err)
		}
		tag := must[string](w.t)(tags.Tag(must[string](w.t)(tenants.Tenant(w.t.Context(), rec))))
		if diff := cmp.Diff(string(ledger.NewLeaf(rec, tag).Bytes()), string(leaves[i])); diff != "" {
			w.t.Fatalf("leaf %d (-record +leaf):\n%s", i, diff)
		}
		i++
	}
	if i != size {
		w.t.Fatalf("%d records, %d leaves", i, size)
	}
}

// TestThirdPartiesJudge: Tessera's fsck and HTTP client, and the Go checksum
// database's tlog and note packages verify what we wrote, served and proved.
func TestThirdPartiesJudge(t *testing.T) {
	j := journaltest.NewJournal(nil)
	w := newWorld(t, j)
	for n := range 150 {
		if err := commit(t.Context(), j, "acme", n); err != nil {
			t.Fatal(err)
		}
	}
	w.start()
	first := w.published(300)
	for n := range 250 {
		if err := commit(t.Context(), j, "other", 1000+n); err != nil {
			t.Fatal(err)
		}
	}
	second := w.published(800)
	w.check(j, 800)
	if err := w.fsck(); err != nil {
		t.Fatal("fsck:", err)
	}

	server := httptest.NewServer(w.ledger.Handler())
	defer server.Close()
	base := must[*url.URL](t)(url.Parse(server.URL + "/"))
	remote := must[*client.HTTPFetcher](t)(client.NewHTTPFetcher(base, server.Client()))
	if err := fsck.New(w.cfg.Origin, w.verifier(), remote, hashes, fsck.Opts{N: 2}).Check(t.Context()); err != nil {
		t.Fatal("fsck over HTTP:", err)
	}
	for _, path := range []string{"/.state/treeState", "/tile/../.state/treeState", "/", "/tile", "/tile/0", "/checkpoint/x"} {
		resp := must[*httptest.ResponseRecorder](t)(get(w.ledger, path), nil)
		if resp.Code != 404 {
			t.Errorf("%s: HTTP %d", path, resp.Code)
		}
	}

	n := must[*note.Note](t)(note.Open([]byte(second.Note), note.VerifierList(w.verifier())))
	tree := must[tlog.Tree](t)(tlogTree(n.Text))
	p := w.ledger.Prover(second.Size)
	for _, i := range []int64{0, 1, 255, 256, 299, 300, 798, 799} {
		in := must[ledger.Inclusion](t)(w.ledger.Inclusion(t.Context(), i, second))
		if err := ledger.VerifyInclusion(second, i, ledger.LeafHash([]byte(in.Leaf)), in.Hashes); err != nil {
			t.Fatal(err)
		}
		var proof tlog.RecordProof
		for _, h := range in.Hashes {
			proof = append(proof, tlog.Hash(h))
		}
		if err := tlog.CheckRecord(proof, tree.N, tree.Hash, i, tlog.RecordHash([]byte(in.Leaf))); err != nil {
			t.Fatalf("record %d: %v", i, err)
		}
		if err := ledger.VerifyInclusion(second, i, ledger.LeafHash([]byte(in.Leaf+" ")), in.Hashes); err == nil {
			t.Fatal("another leaf verifies")
		}
	}
	old := must[tlog.Tree](t)(tlogTree(must[*note.Note](t)(note.Open([]byte(first.Note), note.VerifierList(w.verifier()))).Text))
	hs := must[[][]byte](t)(p.Consistency(t.Context(), first.Size))
	if err := ledger.VerifyConsistency(first, second, hs); err != nil {
		t.Fatal(err)
	}
	if err := ledger.VerifyConsistency(ledger.Checkpoint{Origin: first.Origin, Root: second.Root}, second, nil); err == nil {
		t.Error("a checkpoint of no leaves shows something")
	}
	var proof tlog.TreeProof
	for _, h := range hs {
		proof = append(proof, tlog.Hash(h))
	}
	if err := tlog.CheckTree(proof, tree.N, tree.Hash, old.N, old.Hash); err != nil {
		t.Fatal(err)
	}
	again := must[ledger.Checkpoint](t)(w.ledger.CheckpointAt(t.Context(), first.Size, w.cfg.Key))
	if diff := cmp.Diff(first, again); diff != "" {
		t.Fatal("the checkpoint of an earlier size is another:", diff)
	}
	w.end()
}

func get(l *ledger.Ledger, path string) *httptest.ResponseRecorder {
	resp := httptest.NewRecorder()
	req := httptest.NewRequest("GET", "/x", nil)
	req.URL.Path = path
	l.Handler().ServeHTTP(resp, req)
	return resp
}

// tlogTree reads a checkpoint's text with tlog's own parser, which knows one origin.
func tlogTree(text string) (tlog.Tree, error) {
	_, rest, _ := bytes.Cut([]byte(text), []byte("\n"))
	return tlog.ParseTree(append([]byte("go.sum database tree\n"), rest...))
}
