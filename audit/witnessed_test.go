package audit_test

import (
	"bytes"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/mod/sumdb/note"

	"aob.dev/writ/audit"
	"aob.dev/writ/intents"
	"aob.dev/writ/storage/ledger"
)

// cosigner is a witness's key, and what it signs.
type cosigner struct {
	name string
	key  ed25519.PrivateKey
}

func newCosigner(name string) cosigner {
	seed := sha256.Sum256([]byte(name))
	return cosigner{name, ed25519.NewKeyFromSeed(seed[:])}
}

func (c cosigner) parts() (key, hash []byte) {
	key = append([]byte{4}, c.key.Public().(ed25519.PublicKey)...)
	sum := sha256.Sum256(append([]byte(c.name+"\n"), key...))
	return key, sum[:4]
}

func (c cosigner) vkey() string {
	key, hash := c.parts()
	return fmt.Sprintf("%s+%x+%s", c.name, hash, base64.StdEncoding.EncodeToString(key))
}

// cosign is a note with the witness's line.
func (c cosigner) cosign(checkpoint string) string {
	text, _, _ := strings.Cut(checkpoint, "\n\n")
	_, hash := c.parts()
	sig := ed25519.Sign(c.key, []byte("cosignature/v1\ntime 1700000000\n"+text+"\n"))
	raw := append(binary.BigEndian.AppendUint64(bytes.Clone(hash), 1_700_000_000), sig...)
	return checkpoint + "— " + c.name + " " + base64.StdEncoding.EncodeToString(raw) + "\n"
}

// trusting pins witnesses too.
func (w *world) trusting(quorum int, witnesses ...cosigner) *audit.Trust {
	w.Helper()
	t := *w.trust()
	for _, c := range witnesses {
		t.Witnesses = append(t.Witnesses, c.vkey())
	}
	t.Quorum = quorum
	raw, err := json.Marshal(t)
	w.Must(err)
	out, err := audit.ReadTrust(raw)
	w.Must(err)
	return out
}

// TestWitnessedBundle: a bundle is witnessed by those who cosigned its checkpoint
// and are pinned, and by nobody else; a cosigned past that is not the log's is
// found even without pinned witnesses.
func TestWitnessedBundle(t *testing.T) {
	w := newWorld(t)
	w.live(3)
	one, two, stranger := newCosigner("one.example"), newCosigner("two.example"), newCosigner("stranger.example")
	early := w.source(slice(w.Records()[:20]))
	before, err := early.Ledger.Checkpoint(t.Context(), w.ledgerKey.VerificationKey())
	w.Must(err)
	s := w.source(w.Journal)
	last, err := s.Ledger.Checkpoint(t.Context(), w.ledgerKey.VerificationKey())
	w.Must(err)
	other := newWorld(t)
	other.live(3)
	foreign, err := other.source(other.Journal).Ledger.Checkpoint(t.Context(), other.ledgerKey.VerificationKey())
	w.Must(err)
	forged := resigned(t, w, strings.Replace(last.Note, "\n"+base64.StdEncoding.EncodeToString(last.Root), "\n"+base64.StdEncoding.EncodeToString(foreign.Root), 1))

	export := func(cosigned string) []byte {
		if cosigned != "" {
			w.Must(os.WriteFile(filepath.Join(w.logDir, "cosigned"), []byte(cosigned), 0o600))
		}
		var out bytes.Buffer
		_, err := audit.Export(t.Context(), &out, s, audit.Selection{})
		w.Must(err)
		return out.Bytes()
	}
	both := two.cosign(one.cosign(last.Note))
	for name, c := range map[string]struct {
		cosigned  string
		trust     *audit.Trust
		witnessed bool
		size      int64
		bad       string
	}{
		"nobody cosigned":       {"", w.trusting(0, one), false, 0, ""},
		"nobody pinned":         {both, w.trust(), false, 0, ""},
		"both":                  {both, w.trusting(0, one, two), true, last.Size, ""},
		"one is missing":        {one.cosign(last.Note), w.trusting(0, one, two), false, 0, ""},
		"one is enough":         {one.cosign(last.Note), w.trusting(1, one, two), true, last.Size, ""},
		"by a stranger":         {stranger.cosign(last.Note), w.trusting(1, one, two), false, 0, ""},
		"not all of it":         {one.cosign(before.Note), w.trusting(0, one), false, 20, ""},
		"another past":          {one.cosign(forged), w.trust(), false, 0, "no continuation of what witnesses have cosigned"},
		"a changed cosignature": {strings.Replace(one.cosign(last.Note), "one.example ", "one.example A", 1), w.trusting(0, one), false, 0, ""},
		"another checkpoint's":  {last.Note + strings.TrimPrefix(one.cosign(before.Note), before.Note), w.trusting(0, one), false, 0, ""},
	} {
		_ = os.Remove(filepath.Join(w.logDir, "cosigned")) // there may be none
		r := w.verify(export(c.cosigned), audit.Options{Trust: c.trust})
		switch {
		case c.bad != "" && (r.OK || !strings.Contains(r.FirstBad.Reason, c.bad)):
			t.Errorf("%s: %v", name, r.FirstBad)
		case c.bad == "" && (!r.OK || r.Witnessed != c.witnessed || r.WitnessedSize != c.size):
			t.Errorf("%s: %+v %v", name, r, r.FirstBad)
		case strings.Contains(r.String(), "unwitnessed") != (c.size == 0):
			t.Errorf("%s: %s", name, r)
		}
	}
}

// resigned is a checkpoint's text, signed again by the log's own key.
func resigned(t *testing.T, w *world, checkpoint string) string {
	t.Helper()
	text, _, _ := strings.Cut(checkpoint, "\n\n")
	signer, err := ledger.NoteSigner(w.Origin, w.ledgerKey)
	w.Must(err)
	signed, err := note.Sign(&note.Note{Text: text + "\n"}, signer)
	w.Must(err)
	return string(signed)
}

// TestTrustWitnesses: what pins no witness is refused.
func TestTrustWitnesses(t *testing.T) {
	w := newWorld(t)
	one := newCosigner("one.example").vkey()
	for name, change := range map[string]func(*audit.Trust){
		"no key":      func(t *audit.Trust) { t.Witnesses = []string{"one.example"} },
		"twice":       func(t *audit.Trust) { t.Witnesses = []string{one, one} },
		"too many":    func(t *audit.Trust) { t.Witnesses, t.Quorum = []string{one}, 2 },
		"less than 0": func(t *audit.Trust) { t.Witnesses, t.Quorum = []string{one}, -1 },
	} {
		pinned := audit.NewTrust(intents.Key{KID: w.Root.KID, Role: intents.RoleRoot, Public: w.Root.Public()})
		change(&pinned)
		raw, err := json.Marshal(pinned)
		w.Must(err)
		if _, err := audit.ReadTrust(raw); err == nil {
			t.Error(name)
		}
	}
}

// TestOlderThanCosigned: a log that was restored from an older copy is detected by the
// cosignature that it still has.
func TestOlderThanCosigned(t *testing.T) {
	w := newWorld(t)
	w.live(2)
	one := newCosigner("one.example")
	last, err := w.source(w.Journal).Ledger.Checkpoint(t.Context(), w.ledgerKey.VerificationKey())
	w.Must(err)
	s := w.source(slice(w.Records()[:20]))
	w.Must(os.WriteFile(filepath.Join(w.logDir, "cosigned"), []byte(one.cosign(last.Note)), 0o600))
	var out bytes.Buffer
	_, err = audit.Export(t.Context(), &out, s, audit.Selection{})
	w.Must(err)
	r := w.verify(out.Bytes(), audit.Options{Trust: w.trusting(0, one)})
	if r.OK || !strings.Contains(r.FirstBad.Reason, "older than a checkpoint") {
		t.Errorf("%+v %v", r, r.FirstBad)
	}
}
