package embed_test

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"aob.dev/writ/internal/embed"
)

func hashed(t *testing.T, dimension int) embed.HashEmbedder {
	t.Helper()
	h, err := embed.NewHashed(dimension)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func vectors(t *testing.T, e embed.Embedder, texts ...string) [][]float32 {
	t.Helper()
	out, err := e.Embed(t.Context(), texts)
	if err != nil {
		t.Fatal(err)
	}
	if len(out) != len(texts) {
		t.Fatalf("%d vectors of %d texts", len(out), len(texts))
	}
	for i, v := range out {
		if len(v) != e.Dimension() {
			t.Fatalf("%q: %d numbers", texts[i], len(v))
		}
	}
	return out
}

// cosine of vectors of length 1.
func cosine(a, b []float32) (sum float64) {
	for i := range a {
		sum += float64(a[i]) * float64(b[i])
	}
	return sum
}

// TestHashedIsLexical: what shares words is near, then what shares parts of
// words; a synonym is as far as anything else.
func TestHashedIsLexical(t *testing.T) {
	v := vectors(t, hashed(t, 1536),
		"opening hours of the harbour", "When does the HARBOUR open? Its opening hours!", "harbours opened hourly", "port schedule times", "invoice 4711 paid")
	same, forms, synonym, other := cosine(v[0], v[1]), cosine(v[0], v[2]), cosine(v[0], v[3]), cosine(v[0], v[4])
	if same <= forms || forms < 0.15 {
		t.Errorf("the same words %.2f, their forms %.2f", same, forms)
	}
	if math.Abs(synonym) > 0.15 || math.Abs(other) > 0.15 {
		t.Errorf("a synonym %.2f, something else %.2f", synonym, other)
	}
}

// TestHashedIsStable: vectors are stored, so a text keeps its own for ever.
func TestHashedIsStable(t *testing.T) {
	text := strings.Repeat("Ein Hafen öffnet um 7, le port ouvre à 8. ", 3)
	want := "cb8d803a61aa65d8"
	for range 20 { // maps have an order of their own each time
		sum := sha256.New()
		for _, x := range vectors(t, hashed(t, 64), text)[0] {
			_, _ = fmt.Fprintf(sum, "%.4f ", x)
		}
		if got := hex.EncodeToString(sum.Sum(nil))[:16]; got != want {
			t.Fatalf("vectors have digest %s, not %s: those that are stored do not compare any more", got, want)
		}
	}
	if d := cmp.Diff(vectors(t, hashed(t, 64), text), vectors(t, hashed(t, 64), text)); d != "" {
		t.Error(d)
	}
}

// No vector is all zero: stores refuse it. None is looked at beyond MaxText.
func TestHashedEdges(t *testing.T) {
	long := strings.Repeat("ä", embed.MaxText)
	for _, dimension := range []int{1, 7, 1536} {
		for i, v := range vectors(t, hashed(t, dimension), "", " \t—!", "a", "\xff\xfe", long) {
			if length := cosine(v, v); math.Abs(length-1) > 1e-5 {
				t.Errorf("text %d at %d: length %v", i, dimension, length)
			}
		}
	}
	v := vectors(t, hashed(t, 64), strings.Repeat("word ", 2000), strings.Repeat("word ", 2000)+"other")
	if d := cmp.Diff(v[0], v[1]); d != "" {
		t.Error(d)
	}
	for _, bad := range []int{-1, 0, embed.MaxDimension + 1} {
		if _, err := embed.NewHashed(bad); err == nil {
			t.Errorf("a dimension of %d", bad)
		}
	}
}
