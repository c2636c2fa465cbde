package embed

import (
	"context"
	"fmt"
	"hash/fnv"
	"maps"
	"math"
	"slices"
	"strings"
	"unicode"

	"aob.dev/writ/internal/visible"
)

// HashEmbedder counts the words of a text and their trigrams. The hash of each selects the
// number of the vector that it is added to, and its sign. Vectors are stored, so the
// same text must always have the same vector, on every machine.
type HashEmbedder struct {
	dimension int
}

var _ Embedder = HashEmbedder{}

// NewHashed makes vectors of so many numbers, 1 to MaxDimension.
func NewHashed(dimension int) (HashEmbedder, error) {
	if dimension < 1 || dimension > MaxDimension {
		return HashEmbedder{}, fmt.Errorf("embed: a dimension is 1 to %d", MaxDimension)
	}
	return HashEmbedder{dimension}, nil
}

// Dimension implements Embedder.
func (h HashEmbedder) Dimension() int { return h.dimension }

// Name implements Embedder.
func (h HashEmbedder) Name() string { return "hashed" }

// Embed implements Embedder. It fails only where ctx has ended.
func (h HashEmbedder) Embed(ctx context.Context, texts []string) ([][]float32, error) {
	out := make([][]float32, len(texts))
	for i, text := range texts {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		out[i] = h.vector(visible.Cut(text, MaxText))
	}
	return out, nil
}

func (h HashEmbedder) vector(text string) []float32 {
	counts := map[string]int{}
	words := strings.FieldsFunc(strings.ToLower(text), func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsNumber(r) && !unicode.IsMark(r)
	})
	for _, w := range words {
		counts[w]++
	}
	sums := make([]float64, h.dimension)
	for _, word := range slices.Sorted(maps.Keys(counts)) { // sums of fractions depend on their order
		// A frequent word is hardly more telling than one that occurs twice.
		weight := 1 + math.Log(float64(counts[word]))
		h.add(sums, "word:"+word, weight)
		parts := grams(word)
		for _, part := range parts {
			h.add(sums, "part:"+part, weight/math.Sqrt(float64(len(parts)))) // together as heavy as the word
		}
	}
	return normal(sums)
}

// grams are the trigrams of a word, with its edges marked.
func grams(word string) []string {
	letters := []rune("^" + word + "$")
	var out []string
	for i := range len(letters) - 2 {
		out = append(out, string(letters[i:i+3]))
	}
	return out
}

func (h HashEmbedder) add(sums []float64, feature string, weight float64) {
	hash := fnv.New64a()
	_, _ = hash.Write([]byte(feature)) // never fails
	x := mix(hash.Sum64())
	if x>>63 == 1 {
		weight = -weight
	}
	sums[x%uint64(len(sums))] += weight
}

// mix spreads the bits: those of FNV depend too much on the last letter.
func mix(x uint64) uint64 {
	x = (x ^ x>>33) * 0xff51afd7ed558ccd
	x = (x ^ x>>33) * 0xc4ceb9fe1a85ec53
	return x ^ x>>33
}

// normal is the vector at length 1. A zero vector, which stores refuse, becomes the
// first axis.
func normal(sums []float64) []float32 {
	squares := 0.0
	for _, s := range sums {
		squares += s * s
	}
	out := make([]float32, len(sums))
	if length := math.Sqrt(squares); length > 1e-9 {
		for i, s := range sums {
			out[i] = float32(s / length)
		}
		return out
	}
	out[0] = 1
	return out
}
