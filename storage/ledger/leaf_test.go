package ledger_test

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"strings"
	"testing"

	"aob.dev/writ/intents"
	"aob.dev/writ/storage"
	"aob.dev/writ/storage/ledger"
)

const (
	vectorTag  = "4a652f6b19fbd1ace41263fdf82638558f426971a6c7aa0ea54b70769499c2a2"
	vectorHash = "13e20929cd5727a520df79894a23c4b4f45a1d3dc5c000b9230544da61e91c39"
)

// TestLeafVector is the vector of docs/spec/ledger.md.
func TestLeafVector(t *testing.T) {
	tag := must[string](t)(ledger.NewTags(bytes.Repeat([]byte{0}, 32), "writ/example").Tag("acme"))
	leaf := ledger.Leaf{
		At: "2026-11-20T10:00:00.000Z", Kind: storage.KindIntent, Position: 23,
		RecordDigest: "sha256:" + strings.Repeat("ab", 32), TenantTag: tag, V: ledger.LeafVersion,
	}
	const want = `{"at":"2026-11-20T10:00:00.000Z","kind":"intent","position":23,"record_digest":"sha256:abababababababababababababababababababababababababababababababab","tenant_tag":"TAG","v":1}`
	got := leaf.Bytes()
	if string(got) != strings.Replace(want, "TAG", tag, 1) {
		t.Errorf("leaf %s", got)
	}
	if canonical := must[[]byte](t)(intents.Canonical(got)); !bytes.Equal(canonical, got) {
		t.Errorf("not canonical: %s", got)
	}
	if tag != vectorTag || hex.EncodeToString(leaf.Hash()) != vectorHash {
		t.Errorf("tag %s, hash %x", tag, leaf.Hash())
	}
	if again := must[ledger.Leaf](t)(ledger.ParseLeaf(got)); again != leaf {
		t.Errorf("read back: %+v", again)
	}
}

func FuzzParseLeaf(f *testing.F) {
	f.Add([]byte(`{"at":"2026-11-20T10:00:00.000Z","kind":"intent","position":23,"record_digest":"sha256:ab","tenant_tag":"ab","v":1}`))
	f.Add([]byte(`{"v":1}`))
	f.Add([]byte(`{"at":"\u0041","kind":"","position":-1,"record_digest":"","tenant_tag":"","v":1}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		l, err := ledger.ParseLeaf(raw)
		if err == nil && !bytes.Equal(l.Bytes(), raw) {
			t.Fatalf("%q reads as %q", raw, l.Bytes())
		}
	})
}

func FuzzOpenCheckpoint(f *testing.F) {
	key, err := intents.GenerateSigner(intents.RoleLedger)
	if err != nil {
		f.Fatal(err)
	}
	c, err := ledger.NewReader(f.TempDir(), "writ/test").CheckpointAt(f.Context(), 0, key)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(c.Note)
	f.Add("writ/test\n0\n\n\n— writ/test x\n")
	f.Fuzz(func(t *testing.T, text string) {
		got, err := ledger.OpenCheckpoint(text, "writ/test", key.VerificationKey())
		if err == nil && (got.Size != 0 || !bytes.Equal(got.Root, c.Root)) {
			t.Fatalf("%q opens", text)
		}
	})
}

// TestRecordDigestVector is the vector of docs/spec/journal.md.
func TestRecordDigestVector(t *testing.T) {
	r := storage.Record{
		Kind:  storage.KindTakeover,
		Parts: map[string]json.RawMessage{"takeover": json.RawMessage(`{"of":23}`)},
		Salts: map[string][]byte{"takeover": bytes.Repeat([]byte{0x11}, 32)},
	}
	if d := r.Digest(); d != "sha256:dc3f8387d93d0f59d6f83064ae5be77f2f447536fe1fcf92ae1659750c4c6cba" {
		t.Error(d)
	}
	r.Parts["facts"], r.Salts["facts"] = json.RawMessage(`{}`), bytes.Repeat([]byte{0x22}, 32)
	erased, _ := r.Without("facts")
	for _, r := range []storage.Record{r, erased} {
		if d := r.Digest(); d != "sha256:dc60428d9a343493e8fb3fb539e456966c6e31049a59b5abf8f352b41d71806c" {
			t.Error(d)
		}
	}
}
