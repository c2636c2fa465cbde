package audit

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/transparency-dev/merkle/compact"
	"github.com/transparency-dev/merkle/proof"
	"github.com/transparency-dev/merkle/rfc6962"

	"aob.dev/writ/intents"
	"aob.dev/writ/internal/plainjson/plainjsontest"
	"aob.dev/writ/storage"
	"aob.dev/writ/storage/ledger"
)

// written are lines as an exporter writes them.
func written(t testing.TB) [][]byte {
	t.Helper()
	salt := bytes.Repeat([]byte{7}, 32)
	text := func(s string) Part { return Part{Text: &s, Salt: salt} }
	var out [][]byte
	for _, l := range []line{
		{Record: &Entry{Position: 23, Kind: storage.KindOrder, At: "2026-11-20T10:00:00.000Z", Tag: "ab", Proof: salt, Parts: map[string]Part{
			"order": text(`{"header":"h","payload":"{\"a\":\"\\u003c\\n<&>\"}","sig":"s"}`), "facts": text("\"é\\\t\n\r\""), "grant": {Digest: "cd"},
		}}},
		{Record: &Entry{Position: 0, Kind: storage.KindControl, At: "x", Tag: "ab", Proof: salt, Parts: map[string]Part{"control": text("{\"\u2028\"}")}}},
		{Record: &Entry{Position: 24, Kind: storage.KindOutcome, At: "x", Tag: "ab", Receipt: "a.b.c", Proof: salt, Parts: map[string]Part{"outcome": text("{}"), "raw": {Base64: []byte{0xff}, Salt: salt}}}},
		{Leaf: &Bare{Leaf: `{"at":"x"}`, Proof: salt}},
		{Leaf: &Bare{Leaf: "", Proof: []byte{}}},
		{End: &End{Lines: 3, SHA256: "ab"}},
	} {
		raw, err := l.encode()
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, raw)
	}
	return out
}

// agree: what is read quickly is what the decoder reads, in the one spelling.
func agreeOnLine(t *testing.T, raw []byte) (quick bool) {
	t.Helper()
	got, ok := quickLine(raw)
	if !ok {
		return false
	}
	want, err := decodeSlowly(raw)
	if err != nil {
		t.Fatalf("%q is read quickly, and is no line: %v", raw, err)
	}
	if e := got.Record; e != nil {
		for name, p := range e.Parts {
			if p.body != nil {
				s := string(p.body)
				p.Text, p.body = &s, nil
				e.Parts[name] = p
			}
		}
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(line{}, Part{})); diff != "" {
		t.Fatalf("%q: %s", raw, diff)
	}
	return true
}

// TestQuickLines: usual lines are read quickly, and with any byte changed never
// otherwise than by the decoder.
func TestQuickLines(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	quick := 0
	for _, raw := range written(t) {
		if agreeOnLine(t, raw) {
			quick++
		}
		for i := range raw {
			for range 8 {
				changed := bytes.Clone(raw)
				changed[i] = byte(random.IntN(256))
				agreeOnLine(t, changed)
			}
			agreeOnLine(t, append(bytes.Clone(raw[:i]), raw[i+1:]...))
			agreeOnLine(t, append(append(bytes.Clone(raw[:i]), `\"`[random.IntN(2)]), raw[i:]...))
		}
	}
	if quick != 2 {
		t.Errorf("%d of the lines are read quickly, not the two usual ones", quick)
	}
}

func FuzzQuickLine(f *testing.F) {
	for _, raw := range written(f) {
		f.Add(raw)
	}
	f.Fuzz(func(t *testing.T, raw []byte) { agreeOnLine(t, raw) })
}

// TestQuickFacts: facts as the router writes them are read quickly and rightly; with a byte changed never otherwise than encoding/json reads them.
func TestQuickFacts(t *testing.T) {
	facts := intents.Facts{
		Signer: intents.FactSigner{KID: "k", Role: "task"}, Roles: []string{"user"}, Approvals: []intents.Approval{}, Now: "2026-11-20T10:00:00.000Z",
		Task: &intents.FactTask{TaskID: "t", PlanID: "p", Revision: 1, Step: 2, Skills: []string{}, Deadline: "d"},
		Plan: &intents.FactPlan{PlanID: "p", Status: "executing", Epoch: 1, Revision: 1, Steps: 3}, Skill: &intents.FactSkill{Name: "s", Digest: "d", Effect: "pure"},
	}
	plainjsontest.Agree(t, facts, quickFacts, true)
}

// TestClimber: in trees of any size, over any run of positions, it takes what
// ledger.VerifyInclusion takes, and nothing with a bit changed.
func TestClimber(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6))
	for size := int64(1); size <= 70; size++ {
		leaves := make([][]byte, size)
		tree := (&compact.RangeFactory{Hash: rfc6962.DefaultHasher.HashChildren}).NewEmptyRange(0)
		nodes := map[compact.NodeID][]byte{}
		keep := func(id compact.NodeID, hash []byte) { nodes[id] = hash }
		for i := range leaves {
			leaves[i] = rfc6962.DefaultHasher.HashLeaf([]byte{byte(i)})
			if err := tree.Append(leaves[i], keep); err != nil {
				t.Fatal(err)
			}
		}
		root, err := tree.GetRootHash(keep)
		if err != nil {
			t.Fatal(err)
		}
		c := climber{log: ledger.Checkpoint{Size: size, Root: root}}
		short := 0
		for at := range size {
			if at > 0 && random.IntN(5) == 0 {
				continue // records may be left out
			}
			need, err := proof.Inclusion(uint64(at), uint64(size))
			if err != nil {
				t.Fatal(err)
			}
			var hashes [][]byte
			for _, id := range need.IDs {
				hashes = append(hashes, nodes[id])
			}
			if hashes, err = need.Rehash(hashes, rfc6962.DefaultHasher.HashChildren); err != nil {
				t.Fatal(err)
			}
			it := &item{position: at, hash: leaves[at], proof: join(hashes)}
			for range 4 {
				changed := &item{position: at, hash: bytes.Clone(it.hash), proof: bytes.Clone(it.proof)}
				if n := random.IntN(len(it.proof) + hashSize); n < hashSize {
					changed.hash[n] ^= 4
				} else {
					changed.proof[n-hashSize] ^= 4
				}
				if c.includes(changed) {
					t.Fatalf("leaf %d of %d: changed and taken", at, size)
				}
			}
			if c.met(at, it.hash, it.proof) {
				short++
			} else if !c.includes(it) {
				t.Fatalf("leaf %d of %d is not taken", at, size)
			}
			if c.includes(&item{position: at + 1, hash: it.hash, proof: it.proof}) {
				t.Fatalf("leaf %d of %d is taken at the next position", at, size)
			}
		}
		if size > 8 && short == 0 {
			t.Errorf("%d leaves: no proof was cut short", size)
		}
	}
}
