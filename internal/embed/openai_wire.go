package embed

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"
)

type request struct {
	Model  string   `json:"model"`
	Input  []string `json:"input"`
	Format string   `json:"encoding_format"`
}

type answer struct {
	Data []struct {
		Index     *int      `json:"index"`
		Embedding []float32 `json:"embedding"`
	} `json:"data"`
}

// ask sends one request. after is the time after which the service wants the next one.
func (o *OpenAI) ask(ctx context.Context, input []string) (vectors [][]float32, after time.Duration, err error) {
	raw, after, err := o.post(ctx, request{o.cfg.Model, input, "float"}, maxAnswer)
	if err != nil {
		return nil, after, err
	}
	vectors, err = o.read(raw, len(input))
	return vectors, 0, err
}

var errMalformed = errors.New("embed: the answer of the service is not a list of embeddings")

// read reads an answer: each text has exactly one non-zero vector of the right size. Without
// indices the order counts.
func (o *OpenAI) read(raw []byte, texts int) ([][]float32, error) {
	var a answer
	if len(raw) > maxAnswer || json.Unmarshal(raw, &a) != nil {
		return nil, errMalformed
	}
	if len(a.Data) != texts {
		return nil, fmt.Errorf("embed: the service answers with %d embeddings of %d texts", len(a.Data), texts)
	}
	out := make([][]float32, texts)
	for i, d := range a.Data {
		if d.Index != nil {
			i = *d.Index
		}
		switch {
		case i < 0 || i >= texts || out[i] != nil || d.Embedding == nil:
			return nil, errMalformed
		case len(d.Embedding) != o.cfg.Dimension:
			return nil, &DimensionError{Got: len(d.Embedding), Want: o.cfg.Dimension}
		case !slices.ContainsFunc(d.Embedding, func(v float32) bool { return v != 0 }):
			return nil, errors.New("embed: the service answers with an embedding that is all zero")
		}
		out[i] = d.Embedding
	}
	return out, nil
}
