package embed_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"aob.dev/writ/internal/embed"
)

// service speaks the embeddings API. It answers with the answers in turn, the
// last one again and again; "" is a true one, whose vectors begin with the length
// of the text.
type service struct {
	*httptest.Server
	answers []func(w http.ResponseWriter)
	batches [][]string
	pauses  []time.Duration
	header  http.Header
}

func serve(t *testing.T, answers ...func(w http.ResponseWriter)) *service {
	t.Helper()
	s := &service{answers: answers}
	s.Server = httptest.NewServer(http.HandlerFunc(s.handle))
	t.Cleanup(s.Close)
	return s
}

func (s *service) handle(w http.ResponseWriter, r *http.Request) {
	var in struct {
		Model  string   `json:"model"`
		Input  []string `json:"input"`
		Format string   `json:"encoding_format"`
	}
	dec := json.NewDecoder(r.Body)
	dec.DisallowUnknownFields()
	if r.Method != http.MethodPost || r.URL.Path != "/v1/embeddings" || dec.Decode(&in) != nil || in.Model != "small" || in.Format != "float" {
		http.Error(w, "not what the API takes", http.StatusBadRequest)
		return
	}
	s.header = r.Header
	s.batches = append(s.batches, in.Input)
	if len(s.answers) > 0 {
		answer := s.answers[min(len(s.batches), len(s.answers))-1]
		if answer != nil {
			answer(w)
			return
		}
	}
	var out struct {
		Data []map[string]any `json:"data"`
	}
	for i, text := range in.Input {
		out.Data = append(out.Data, map[string]any{"object": "embedding", "index": i, "embedding": []float64{float64(len(text)), 0, 1}})
	}
	slices.Reverse(out.Data) // the index counts, not the order
	_ = json.NewEncoder(w).Encode(out)
}

func (s *service) embedder(t *testing.T) *embed.OpenAI {
	t.Helper()
	e, err := embed.NewOpenAI(embed.OpenAIConfig{
		BaseURL: s.URL + "/v1/", Key: "secret", Model: "small", Dimension: 3,
		Wait: func(ctx context.Context, d time.Duration) error {
			s.pauses = append(s.pauses, d)
			return ctx.Err()
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func status(code int, header ...string) func(http.ResponseWriter) {
	return func(w http.ResponseWriter) {
		for i := 0; i < len(header); i += 2 {
			w.Header().Set(header[i], header[i+1])
		}
		http.Error(w, `{"error":{"message":"the text was: confidential"}}`, code)
	}
}

func text(answer string) func(http.ResponseWriter) {
	return func(w http.ResponseWriter) { _, _ = w.Write([]byte(answer)) }
}

// TestOpenAI: texts go in batches, and vectors come back in their order.
func TestOpenAI(t *testing.T) {
	s := serve(t)
	texts := make([]string, 150)
	var want [][]float32
	for i := range texts {
		texts[i] = strings.Repeat("x", i+1)
		want = append(want, []float32{float32(i + 1), 0, 1})
	}
	e := s.embedder(t)
	if d := cmp.Diff(want, vectors(t, e, texts...)); d != "" {
		t.Error(d)
	}
	if len(s.batches) != 3 || len(s.batches[0]) != 64 || len(s.batches[2]) != 22 {
		t.Errorf("%d batches", len(s.batches))
	}
	if got := s.header.Get("Authorization"); got != "Bearer secret" {
		t.Errorf("authorization %q", got)
	}
	if e.Name() != "openai:small" {
		t.Error(e.Name())
	}
	// What services refuse is not sent: empty texts, and too long ones.
	s.batches = nil
	vectors(t, e, " \n", strings.Repeat("ä", embed.MaxText))
	if got := s.batches[0]; got[0] != "-" || len(got[1]) > embed.MaxText || !strings.HasSuffix(got[1], "ä…") {
		t.Errorf("%q, %d bytes", got[0], len(got[1]))
	}
	if out, err := e.Embed(t.Context(), nil); err != nil || len(out) != 0 || len(s.batches) != 1 {
		t.Errorf("of nothing: %v, %v", out, err)
	}
}

// TestOpenAIRetries: what may work later is sent again, twice at most, after the
// pause that the service asks for.
func TestOpenAIRetries(t *testing.T) {
	dropped := func(w http.ResponseWriter) {
		if c, _, err := http.NewResponseController(w).Hijack(); err == nil {
			_ = c.Close()
		}
	}
	short := func(w http.ResponseWriter) {
		w.Header().Set("Content-Length", "1000")
		_, _ = w.Write([]byte(`{"data":[`))
	}
	for name, tt := range map[string]struct {
		answers []func(http.ResponseWriter)
		pauses  []time.Duration
		fails   bool
	}{
		"429 once":       {[]func(http.ResponseWriter){status(429, "Retry-After", "2"), nil}, []time.Duration{2 * time.Second}, false},
		"429 for ever":   {[]func(http.ResponseWriter){status(429)}, []time.Duration{200 * time.Millisecond, 400 * time.Millisecond}, true},
		"429 for long":   {[]func(http.ResponseWriter){status(429, "Retry-After", "60"), nil}, nil, true},
		"429 until then": {[]func(http.ResponseWriter){status(429, "Retry-After", "Sat, 21 Nov 2026 00:00:00 GMT"), nil}, []time.Duration{200 * time.Millisecond}, false},
		"503, 500":       {[]func(http.ResponseWriter){status(503), status(500), nil}, []time.Duration{200 * time.Millisecond, 400 * time.Millisecond}, false},
		"no answer":      {[]func(http.ResponseWriter){dropped, nil}, []time.Duration{200 * time.Millisecond}, false},
		"half an answer": {[]func(http.ResponseWriter){short, nil}, []time.Duration{200 * time.Millisecond}, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := serve(t, tt.answers...)
			_, err := s.embedder(t).Embed(t.Context(), []string{"a"})
			if tt.fails != errors.Is(err, embed.ErrUnavailable) || !tt.fails && err != nil {
				t.Errorf("%v", err)
			}
			if d := cmp.Diff(tt.pauses, s.pauses); d != "" {
				t.Error(d)
			}
		})
	}
}

// TestOpenAIMalformed: an answer that is not one vector for each text, of the
// right size, is an error for good, and is asked for once. None repeats what the
// service said.
func TestOpenAIMalformed(t *testing.T) {
	one := func(vector string) string { return fmt.Sprintf(`{"data":[{"index":0,"embedding":%s}]}`, vector) }
	for name, answer := range map[string]func(http.ResponseWriter){
		"no JSON":     text("<html>confidential</html>"),
		"no data":     text(`{}`),
		"too few":     text(`{"data":[]}`),
		"too many":    text(`{"data":[{"index":0,"embedding":[1,2,3]},{"index":1,"embedding":[1,2,3]}]}`),
		"other index": text(`{"data":[{"index":1,"embedding":[1,2,3]}]}`),
		"below zero":  text(`{"data":[{"index":-1,"embedding":[1,2,3]}]}`),
		"null":        text(one("null")),
		"text":        text(one(`"base64"`)),
		"out of 32":   text(one("[1e39,0,0]")),
		"all zero":    text(one("[0,0,0]")),
		"key":         status(401),
		"redirect":    status(307, "Location", "http://127.0.0.1:1/"),
		"no model":    status(404),
	} {
		t.Run(name, func(t *testing.T) {
			s := serve(t, answer)
			_, err := s.embedder(t).Embed(t.Context(), []string{"confidential"})
			if err == nil || errors.Is(err, embed.ErrUnavailable) || strings.Contains(err.Error(), "confidential") {
				t.Errorf("%v", err)
			}
			if len(s.batches) != 1 {
				t.Errorf("asked %d times", len(s.batches))
			}
		})
	}
	for _, size := range []int{1, 4} {
		s := serve(t, text(one("["+strings.TrimSuffix(strings.Repeat("1,", size), ",")+"]")))
		_, err := s.embedder(t).Embed(t.Context(), []string{"a"})
		var wrong *embed.DimensionError
		if !errors.As(err, &wrong) || wrong.Got != size || wrong.Want != 3 {
			t.Errorf("%d numbers: %v", size, err)
		}
	}
	// A vector for each of two texts, but twice the same.
	s := serve(t, text(`{"data":[{"index":0,"embedding":[1,2,3]},{"index":0,"embedding":[1,2,3]}]}`))
	if _, err := s.embedder(t).Embed(t.Context(), []string{"a", "b"}); err == nil {
		t.Error("two vectors of one text")
	}
}

func TestOpenAIEnds(t *testing.T) {
	s := serve(t, status(503))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.embedder(t).Embed(ctx, []string{"a"}); !errors.Is(err, context.Canceled) || len(s.pauses) > 1 {
		t.Errorf("%v", err)
	}
}

func TestOpenAIConfig(t *testing.T) {
	good := embed.OpenAIConfig{BaseURL: "https://api.example/v1", Model: "m", Dimension: 3}
	if _, err := embed.NewOpenAI(good); err != nil {
		t.Fatal(err)
	}
	for name, spoil := range map[string]func(*embed.OpenAIConfig){
		"scheme":    func(c *embed.OpenAIConfig) { c.BaseURL = "file:///etc" },
		"no host":   func(c *embed.OpenAIConfig) { c.BaseURL = "https:///v1" },
		"query":     func(c *embed.OpenAIConfig) { c.BaseURL = "https://a/?key=1" },
		"no model":  func(c *embed.OpenAIConfig) { c.Model = "" },
		"dimension": func(c *embed.OpenAIConfig) { c.Dimension = 0 },
	} {
		bad := good
		spoil(&bad)
		if _, err := embed.NewOpenAI(bad); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}
