// Package embed turns texts into vectors, so that similar texts can be found without shared words.
//
// Hashed works offline and is lexical: it counts words and parts of words, so it
// finds other forms of a word and misspelled ones, and knows no synonyms. OpenAI
// asks a service, to which it sends the texts.
package embed

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"aob.dev/writ/internal/egress"
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

// service is an endpoint of a model server. No error contains text of the server, which may repeat
// the request.
type service struct {
	url, key string
	client   *http.Client
	server   egress.Server // as errors tell of it
}

// servers are how errors tell of each kind.
var servers = map[string]egress.Server{
	"embed":  {Name: "the embedder", Unaffected: "texts are found by their words, and get their vectors later", Address: "embedder_url (--embedder-url) and embedder (--embedder)", Secret: "embedder_key"},
	"rerank": {Name: "the reranker", Unaffected: "what is found keeps its order", Address: "reranker_url (--reranker-url) and reranker (--reranker)", Secret: "reranker_key"},
}

// newService of a kind, which errors begin with. Nothing is sent yet.
func newService(kind, base, path, key, model string) (s service, err error) {
	u, err := url.Parse(base)
	switch {
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.RawQuery != "" || u.Fragment != "":
		return s, errors.New(kind + ": the base URL must be an http or https URL without query and fragment")
	case model == "":
		return s, errors.New(kind + ": a model is required")
	}
	s = service{url: strings.TrimRight(base, "/") + path, key: key, client: egress.Client(egress.Transport(base)), server: servers[kind]}
	s.server.Name += " at " + u.Redacted()
	s.server.Quiet, s.server.Try = true, "writ up"
	s.client.Timeout = RequestTimeout
	return s, nil
}

// post sends one request. An answer of more than limit bytes is cut one byte behind it. after
// is the time after which the server wants the next request.
func (s service) post(ctx context.Context, question any, limit int64) (answer []byte, after time.Duration, err error) {
	body, err := json.Marshal(question)
	if err != nil {
		return nil, 0, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.url, bytes.NewReader(body))
	if err != nil {
		return nil, 0, err
	}
	req.Header.Set("Content-Type", "application/json")
	if s.key != "" {
		req.Header.Set("Authorization", "Bearer "+s.key)
	}
	resp, err := s.client.Do(req)
	if err != nil {
		return nil, 0, unavailable{s.server.Fault(err)}
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, 64<<10)) // so that the connection is used again
		return nil, egress.RetryAfter(resp.Header, time.Now()), s.refusal(resp.StatusCode)
	}
	answer, err = io.ReadAll(io.LimitReader(resp.Body, limit+1))
	if err != nil {
		err = unavailable{s.server.Fault(err)}
	}
	return answer, 0, err
}

// refusal is the error of a status: ErrUnavailable where the request may work later.
func (s service) refusal(status int) error {
	err := s.server.Fault(egress.Status(status))
	if status == http.StatusTooManyRequests || status == http.StatusRequestTimeout || status >= 500 && status != http.StatusNotImplemented {
		return unavailable{err}
	}
	return err
}

// unavailable is an error that is ErrUnavailable too.
type unavailable struct{ error }

func (u unavailable) Is(target error) bool { return target == ErrUnavailable }
