// Package embed turns texts into vectors, so that what is alike can be found
// without sharing words.
//
// Hashed works offline and is lexical: it counts words and parts of words, so it
// finds other forms of a word and misspelled ones, and knows no synonyms. OpenAI
// asks a service, to which it sends the texts.
package embed

import (
	"context"
	"errors"
	"fmt"
)

// MaxText is how many bytes of a text are looked at; the rest is ignored. No
// tokenizer makes more tokens than bytes, and models take 8,192 of them.
const MaxText = 8000

// MaxDimension of vectors, as stores take them.
const MaxDimension = 16000

// Embedder makes vectors. It is safe for concurrent use.
type Embedder interface {
	// Embed returns one vector for each text, in order. Each has Dimension numbers
	// of which one is not zero. All or none: an error is ErrUnavailable, where the
	// same call may work later, or lasting.
	Embed(ctx context.Context, texts []string) ([][]float32, error)
	Dimension() int
	// Name says what made a vector. Vectors of different names do not compare.
	Name() string
}

// ErrUnavailable is that the service does not answer, or not now.
var ErrUnavailable = errors.New("embed: unavailable")

// DimensionError is that a model gives vectors of another size than the store is
// made for. It does not pass.
type DimensionError struct {
	Got, Want int
}

func (e *DimensionError) Error() string {
	return fmt.Sprintf("embed: the model gives vectors of %d numbers, and the store is made for %d", e.Got, e.Want)
}

// cut a text to MaxText bytes, between characters.
func cut(text string) string {
	if len(text) <= MaxText {
		return text
	}
	end := MaxText
	for end > 0 && text[end]&0xc0 == 0x80 {
		end--
	}
	return text[:end]
}
