// Package embed turns texts into vectors, so that similar texts can be found without shared words.
//
// Hashed works offline and is lexical: it counts words and parts of words, so it
// finds other forms of a word and misspelled ones, and knows no synonyms. OpenAI
// asks a service, to which it sends the texts.
package embed

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// MaxText is how many bytes of a text are used; the rest is ignored. No tokenizer makes
// more tokens than bytes, and models take 8,192 of them.
const MaxText = 8000

// MaxDimension of vectors that a store takes.
const MaxDimension = 16000

// Embedder makes vectors. It is safe for concurrent use.
type Embedder interface {
	// Embed returns one vector for each text, in order, or an error and none. Each
	// has Dimension numbers of which at least one is not zero. After
	// ErrUnavailable the same call may work later.
	Embed(ctx context.Context, texts []string) ([][]float32, error)
	Dimension() int
	// Name identifies the embedder of a vector. Vectors of different names are not
	// comparable.
	Name() string
}

// OneVector makes the vector of one text, or returns why there is none. It waits at most the given
// time. Only the end of ctx is an error: an intent continues without a vector when the embedder
// fails. A nil embedder makes none.
func OneVector(ctx context.Context, e Embedder, text string, wait time.Duration) (vector []float32, reason string, err error) {
	if e == nil {
		return nil, "there is no embedder", nil
	}
	bounded, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	vectors, err := e.Embed(bounded, []string{text})
	switch {
	case err == nil:
		return vectors[0], "", nil
	case ctx.Err() != nil:
		return nil, "", ctx.Err()
	case errors.Is(err, ErrUnavailable) || bounded.Err() != nil:
		return nil, "the embedder does not answer", nil
	default:
		return nil, "the embedder gives no vector", nil
	}
}

// ErrUnavailable is that the service does not answer now.
var ErrUnavailable = errors.New("embed: unavailable")

// DimensionError is that a model gives vectors of another size than the store is made
// for. Trying again does not help.
type DimensionError struct {
	Got, Want int
}

func (e *DimensionError) Error() string {
	return fmt.Sprintf("embed: the model gives vectors of %d numbers, and the store is made for %d", e.Got, e.Want)
}
