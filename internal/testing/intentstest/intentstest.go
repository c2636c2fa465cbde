// Package intentstest brings the vectors of intents/testdata (docs/spec/envelope.md)
// to every entrance that accepts intents.
package intentstest

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"aob.dev/writ/intents"
)

// Vector is one intent with the code that it must be answered with.
type Vector struct {
	Name     string          `json:"name"`
	Doc      string          `json:"doc"`
	Intent   json.RawMessage `json:"envelope,omitempty"`
	Text     string          `json:"raw,omitempty"`
	Bytes    []byte          `json:"raw_base64,omitempty"`
	Refused  []intents.JWK   `json:"refused_keys,omitempty"`
	Now      time.Time       `json:"now"`
	Expect   intents.Code    `json:"expect"`
	IntentID string          `json:"intent_id,omitempty"`
}

// Raw is the intent as it is received.
func (v Vector) Raw() []byte {
	switch {
	case v.Intent != nil:
		return v.Intent
	case v.Bytes != nil:
		return v.Bytes
	}
	return []byte(v.Text)
}

// Verifies reports whether stages 1 and 2 accept the intent, apart from freshness.
func (v Vector) Verifies() bool {
	return v.Expect == intents.OK || v.Expect == intents.ExpiredTTL || v.Expect == intents.NotYetValid
}

// Vectors are all of them; none is an error.
func Vectors(tb testing.TB) []Vector {
	tb.Helper()
	files, err := filepath.Glob(filepath.Join(folder(tb), "vectors", "*.json"))
	if err != nil || len(files) == 0 {
		tb.Fatalf("no vectors: %v", err)
	}
	out := make([]Vector, len(files))
	for i, path := range files {
		read(tb, path, &out[i])
	}
	return out
}

// Keys are those that every vector knows.
func Keys(tb testing.TB) intents.JWKS {
	tb.Helper()
	var set intents.JWKS
	read(tb, filepath.Join(folder(tb), "keys.json"), &set)
	return set
}

// Signer is a key of the vectors: its seed is the SHA-256 of "writ vectors: " and its name.
func Signer(tb testing.TB, role intents.Role, name string) intents.Signer {
	tb.Helper()
	seed := sha256.Sum256([]byte("writ vectors: " + name))
	s, err := intents.NewSigner(role, ed25519.NewKeyFromSeed(seed[:]))
	if err != nil {
		tb.Fatal(err)
	}
	return s
}

func read(tb testing.TB, path string, v any) {
	tb.Helper()
	raw, err := os.ReadFile(path) //nolint:gosec // G304: a file of testdata
	if err != nil {
		tb.Fatal(err)
	}
	if err := intents.UnmarshalStrict(raw, v); err != nil {
		tb.Fatalf("%s: %v", path, err)
	}
}

// folder is intents/testdata, found from the folder of the test upwards.
func folder(tb testing.TB) string {
	tb.Helper()
	dir, err := os.Getwd()
	if err != nil {
		tb.Fatal(err)
	}
	for ; ; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return filepath.Join(dir, "intents", "testdata")
		}
		if dir == filepath.Dir(dir) {
			tb.Fatal("the test does not run in the module")
		}
	}
}
