//go:build integration

package intents

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"crypto/ed25519"
	"encoding/hex"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// publisher is the module that carries published vectors of Ed25519 with it:
// Wycheproof's, and those of the scheme's authors. It is no dependency of ours.
const publisher = "github.com/cloudflare/circl@v1.6.5"

// published reads a file of the publisher's testdata, which must be as it was
// when these tests were written.
func published(t *testing.T, name, digest string) []byte {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", "mod", "download", "-json", publisher).Output()
	if err != nil {
		t.Fatalf("%s: %v: %s", publisher, err, out)
	}
	var module struct{ Dir string }
	if err := json.Unmarshal(out, &module); err != nil {
		t.Fatal(err)
	}
	raw, err := os.ReadFile(filepath.Join(module.Dir, "sign", "ed25519", "testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	if got := Digest(raw); got != digest {
		t.Fatalf("%s is %s", name, got)
	}
	z, err := gzip.NewReader(bytes.NewReader(raw))
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// accepts verifies as intents and tokens are verified: a key that is admitted and
// a signature that verifies.
func accepts(t *testing.T, pub, message, sig []byte) bool {
	t.Helper()
	if err := AdmitKey(pub); err != nil {
		t.Fatalf("key %x: %v", pub, err)
	}
	return Key{Public: pub}.verifies(message, sig)
}

// TestIntegrationWycheproof: each of Wycheproof's cases has its result. No key of
// them is one that our admission is stricter about.
func TestIntegrationWycheproof(t *testing.T) {
	var file struct {
		Count  int `json:"numberOfTests"`
		Groups []struct {
			Key struct {
				Public string `json:"pk"`
			} `json:"key"`
			Tests []struct {
				ID      int      `json:"tcId"`
				Message string   `json:"msg"`
				Sig     string   `json:"sig"`
				Result  string   `json:"result"`
				Flags   []string `json:"flags"`
			} `json:"tests"`
		} `json:"testGroups"`
	}
	text := published(t, "wycheproof_Ed25519.json.gz", "sha256:38b2738e31c8c80d8198c419eed8657a7e28e2f3440df98422768905d19a18aa")
	if err := json.Unmarshal(text, &file); err != nil {
		t.Fatal(err)
	}
	count, malleable := 0, 0
	for _, g := range file.Groups {
		for _, c := range g.Tests {
			count++
			if slices.Contains(c.Flags, "SignatureMalleability") {
				malleable++
			}
			if got := accepts(t, unhex(t, g.Key.Public), unhex(t, c.Message), unhex(t, c.Sig)); got != (c.Result == "valid") {
				t.Errorf("case %d: accepted %t, want %s", c.ID, got, c.Result)
			}
		}
	}
	if count != file.Count || count < 140 || malleable == 0 {
		t.Errorf("%d cases, %d of malleability", count, malleable)
	}
}

// TestIntegrationKnownAnswers: the 1024 known answers of the authors of Ed25519.
// Each is accepted, and not with one bit changed or another spelling of S.
func TestIntegrationKnownAnswers(t *testing.T) {
	lines := bufio.NewScanner(bytes.NewReader(published(t, "sign.input.txt.gz", "sha256:2c5420b1c1c5fcdbddc9999f1d0ba7214a14e007f3a1d6791a07d76b0f1d6c5a")))
	lines.Buffer(nil, 1<<20)
	count := 0
	for lines.Scan() {
		fields := strings.Split(lines.Text(), ":")
		secret, pub, message, sig := unhex(t, fields[0])[:32], unhex(t, fields[1]), unhex(t, fields[2]), unhex(t, fields[3])[:64]
		if got := ed25519.Sign(ed25519.NewKeyFromSeed(secret), message); !bytes.Equal(got, sig) {
			t.Errorf("line %d: signed %x", count, got)
		}
		changed := slices.Clone(sig)
		changed[count%64] ^= 1
		if !accepts(t, pub, message, sig) || accepts(t, pub, message, changed) || accepts(t, pub, message, mustDecode(addL(b64.EncodeToString(sig)))) {
			t.Errorf("line %d: %s", count, hex.EncodeToString(sig))
		}
		count++
	}
	if err := lines.Err(); err != nil || count != 1024 {
		t.Errorf("%d answers, %v", count, err)
	}
}
