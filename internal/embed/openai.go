package embed

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"aob.dev/writ/internal/clock"
	"aob.dev/writ/internal/visible"
)

// Bounds of calls to a service.
const (
	RequestTimeout = 10 * time.Second // of one request
	maxBatch       = 64               // texts in one request
	maxAnswer      = 64 << 20         // bytes: 64 vectors of 16,000 numbers with all their digits
	maxTries       = 3                // of one request
	firstPause     = 200 * time.Millisecond
	maxPause       = 5 * time.Second // a service that asks for more is unavailable
)

// OpenAIConfig of a service that speaks OpenAI's embeddings API. BaseURL, Model
// and Dimension are required.
type OpenAIConfig struct {
	BaseURL   string // http or https; "/embeddings" is added
	Key       string // bearer token; empty: none is sent
	Model     string
	Dimension int // that the store is made for
	// Wait pauses before a request is sent again; nil: a timer. It returns ctx's
	// error if that ends first.
	Wait func(ctx context.Context, d time.Duration) error
}

// OpenAI asks a service. The request is sent again, at most twice, after no
// answer, 429 and 5xx: it changes nothing there.
type OpenAI struct {
	cfg OpenAIConfig
	service
}

var _ Embedder = (*OpenAI)(nil)

// NewOpenAI sends nothing yet.
func NewOpenAI(cfg OpenAIConfig) (*OpenAI, error) {
	s, err := newService("embed", cfg.BaseURL, "/embeddings", cfg.Key, cfg.Model)
	switch {
	case err != nil:
		return nil, err
	case cfg.Dimension < 1 || cfg.Dimension > MaxDimension:
		return nil, fmt.Errorf("embed: a dimension is 1 to %d", MaxDimension)
	}
	if cfg.Wait == nil {
		cfg.Wait = clock.Sleep
	}
	return &OpenAI{cfg, s}, nil
}

// Dimension implements Embedder.
func (o *OpenAI) Dimension() int { return o.cfg.Dimension }

// Name implements Embedder.
func (o *OpenAI) Name() string { return "openai:" + o.cfg.Model }

// Embed implements Embedder. A blank text, which services refuse, is sent as "-".
func (o *OpenAI) Embed(ctx context.Context, texts []string) ([][]float32, error) {
	out := make([][]float32, 0, len(texts))
	for batch := range slices.Chunk(texts, maxBatch) {
		input := make([]string, len(batch))
		for i, text := range batch {
			input[i] = cmp.Or(strings.TrimSpace(visible.Cut(text, MaxText)), "-")
		}
		vectors, err := o.patient(ctx, input)
		if err != nil {
			return nil, err
		}
		out = append(out, vectors...)
	}
	return out, nil
}

// patient sends a request again where that may help.
func (o *OpenAI) patient(ctx context.Context, input []string) ([][]float32, error) {
	pause := firstPause
	for try := 1; ; try++ {
		vectors, after, err := o.ask(ctx, input)
		if err == nil || !errors.Is(err, ErrUnavailable) || try == maxTries || after > maxPause {
			return vectors, err
		}
		if wait := o.cfg.Wait(ctx, max(pause, after)); wait != nil {
			return nil, fmt.Errorf("%w (%w)", err, wait)
		}
		pause *= 2
	}
}

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
