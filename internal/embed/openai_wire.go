package embed

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"time"

	"aob.dev/writ/internal/egress"
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
// No error contains text of the service, which may repeat the input.
func (o *OpenAI) ask(ctx context.Context, input []string) (vectors [][]float32, after time.Duration, err error) {
	body, err := json.Marshal(request{o.cfg.Model, input, "float"})
	if err != nil {
		return nil, 0, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, o.url, bytes.NewReader(body))
	if err != nil {
		return nil, 0, err
	}
	req.Header.Set("Content-Type", "application/json")
	if o.cfg.Key != "" {
		req.Header.Set("Authorization", "Bearer "+o.cfg.Key)
	}
	resp, err := o.client.Do(req)
	if err != nil {
		return nil, 0, fmt.Errorf("%w: no answer", ErrUnavailable)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, 64<<10)) // so that the connection is used again
		return nil, egress.RetryAfter(resp.Header, time.Now()), refusal(resp.StatusCode)
	}
	raw, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer+1))
	if err != nil {
		return nil, 0, fmt.Errorf("%w: the answer broke off", ErrUnavailable)
	}
	vectors, err = o.read(raw, len(input))
	return vectors, 0, err
}

// refusal is the error of a status: ErrUnavailable where the request may work later.
func refusal(status int) error {
	if status == http.StatusTooManyRequests || status == http.StatusRequestTimeout || status >= 500 && status != http.StatusNotImplemented {
		return fmt.Errorf("%w: the service answers %d", ErrUnavailable, status)
	}
	return fmt.Errorf("embed: the service answers %d", status)
}

var errMalformed = errors.New("embed: the answer of the service is not a list of embeddings")

// read an answer: each text has exactly one vector, of the right size, that
// points somewhere. Without indices the order counts.
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
