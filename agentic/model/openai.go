package model

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/shared"

	"aob.dev/writ/internal/clock"
)

// Defaults and limits of [OpenAI].
const (
	DefaultBaseURL = "https://api.openai.com/v1"
	DefaultTimeout = 2 * time.Minute // one attempt

	maxAttempts    = 3
	firstBackoff   = time.Second     // doubles; a server's Retry-After wins
	maxRetryAfter  = 2 * time.Minute // a longer wait is left to the caller
	maxOutputBytes = 4 << 20
)

// OpenAIConfig says which server and model to use. Nothing is read from the
// environment; zero values give the defaults above.
type OpenAIConfig struct {
	BaseURL string // of any OpenAI-compatible server
	APIKey  string // empty: none is sent
	Model   string // required
	Timeout time.Duration
	// NoTemperature leaves the temperature out, for models that refuse one.
	NoTemperature bool
	// RoundTripper carries the requests; nil is a transport of its own that
	// uses no proxy.
	RoundTripper http.RoundTripper
}

// String names the model and never shows the key.
func (c OpenAIConfig) String() string { return "openai:" + c.Model }

// GoString is String, for %#v.
func (c OpenAIConfig) GoString() string { return c.String() }

// OpenAI thinks with a remote model, over the chat completions API with a
// strict JSON Schema response format. It tries a request up to three times
// when it may succeed later (rate limit, server failure, timeout, cut stream).
// Neither prompts nor keys are ever logged or part of an error.
type OpenAI struct {
	cfg  OpenAIConfig
	svc  openai.ChatCompletionService
	now  func() time.Time
	wait func(context.Context, time.Duration) error
}

var _ Model = (*OpenAI)(nil)

// NewOpenAI checks the configuration; it connects to nothing.
func NewOpenAI(cfg OpenAIConfig) (*OpenAI, error) {
	if cfg.Model == "" {
		return nil, errors.New("openai: name a model")
	}
	if cfg.BaseURL == "" {
		cfg.BaseURL = DefaultBaseURL
	}
	u, err := url.Parse(cfg.BaseURL)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return nil, errors.New("openai: the base URL is http(s)://host/path, without credentials and query")
	}
	if cfg.Timeout <= 0 {
		cfg.Timeout = DefaultTimeout
	}
	if cfg.RoundTripper == nil {
		cfg.RoundTripper = &http.Transport{ForceAttemptHTTP2: true, TLSHandshakeTimeout: 10 * time.Second, IdleConnTimeout: 90 * time.Second}
	}
	opts := []option.RequestOption{
		option.WithBaseURL(strings.TrimSuffix(cfg.BaseURL, "/") + "/"),
		option.WithMaxRetries(0), // retries are ours: see Complete
		option.WithHTTPClient(&http.Client{
			Transport:     openaiWire{cfg.RoundTripper},
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		}),
	}
	if cfg.APIKey != "" {
		opts = append(opts, option.WithAPIKey(cfg.APIKey))
	}
	return &OpenAI{cfg: cfg, svc: openai.NewChatCompletionService(opts...), now: time.Now, wait: clock.Sleep}, nil
}

// Name is "openai:" and the model.
func (o *OpenAI) Name() string { return o.cfg.String() }

// Complete implements Model.
func (o *OpenAI) Complete(ctx context.Context, req Request) (Reply, error) {
	params, err := o.params(req)
	if err != nil {
		return Reply{}, &Error{Reason: "encode the request", Err: err}
	}
	begin := o.now()
	var used Usage
	backoff := firstBackoff
	for n := 1; ; n++ {
		ans, failed := o.once(ctx, params)
		used.InputTokens += ans.in
		used.OutputTokens += ans.out
		used.Latency = o.now().Sub(begin)
		if failed == nil {
			out, err := looseOutput(req.Schema, []byte(ans.text))
			if err != nil {
				// The decoder's message may quote the answer.
				return Reply{Usage: used}, &Error{Reason: "the model answered with something else than JSON", Err: ErrOutput}
			}
			return Reply{Output: out, Usage: used}, nil
		}
		delay := max(ans.retryAfter, 0)
		if delay == 0 {
			delay = backoff
			backoff *= 2
		}
		if !failed.Retryable || n == maxAttempts || !o.worthWaiting(ctx, delay) || o.wait(ctx, delay) != nil {
			return Reply{Usage: used}, failed
		}
	}
}

// worthWaiting reports whether there is time for another attempt after delay.
func (o *OpenAI) worthWaiting(ctx context.Context, delay time.Duration) bool {
	if ctx.Err() != nil || delay > maxRetryAfter {
		return false
	}
	deadline, ok := ctx.Deadline()
	return !ok || o.now().Add(delay).Before(deadline)
}

func (o *OpenAI) params(req Request) (openai.ChatCompletionNewParams, error) {
	schema, err := strictSchema(req.Schema)
	if err != nil {
		return openai.ChatCompletionNewParams{}, fmt.Errorf("schema: %w", err)
	}
	p := openai.ChatCompletionNewParams{
		Model: o.cfg.Model,
		Messages: []openai.ChatCompletionMessageParamUnion{
			openai.SystemMessage(req.Instructions),
			openai.UserMessage(string(req.Input)),
		},
		ResponseFormat: openai.ChatCompletionNewParamsResponseFormatUnion{
			OfJSONSchema: &shared.ResponseFormatJSONSchemaParam{
				JSONSchema: shared.ResponseFormatJSONSchemaJSONSchemaParam{
					Name: string(req.Purpose), Strict: openai.Bool(true), Schema: schema,
				},
			},
		},
		StreamOptions: openai.ChatCompletionStreamOptionsParam{IncludeUsage: openai.Bool(true)},
	}
	if !o.cfg.NoTemperature {
		p.Temperature = openai.Float(req.Temperature)
	}
	if req.MaxTokens > 0 {
		p.MaxCompletionTokens = openai.Int(int64(req.MaxTokens))
	}
	return p, nil
}

// completion is what one attempt gave.
type completion struct {
	text       string
	in, out    int           // tokens, where the server said
	retryAfter time.Duration // 0: it did not say
}

// once sends the request and reads the whole stream.
func (o *OpenAI) once(ctx context.Context, params openai.ChatCompletionNewParams) (completion, *Error) {
	attempt, cancel := context.WithTimeout(ctx, o.cfg.Timeout)
	defer cancel()
	attempt, seen := withLastResponse(attempt)
	stream := o.svc.NewStreaming(attempt, params)
	defer func() { _ = stream.Close() }()
	var ans completion
	var text strings.Builder
	finish, refused := "", false
	for stream.Next() {
		chunk := stream.Current()
		if chunk.Usage.TotalTokens > 0 {
			ans.in, ans.out = int(chunk.Usage.PromptTokens), int(chunk.Usage.CompletionTokens)
		}
		for _, c := range chunk.Choices {
			if c.Index != 0 {
				continue
			}
			text.WriteString(c.Delta.Content)
			refused = refused || c.Delta.Refusal != ""
			if c.FinishReason != "" {
				finish = c.FinishReason
			}
		}
		if text.Len() > maxOutputBytes {
			return ans, &Error{Reason: fmt.Sprintf("the model's answer is larger than %d bytes", maxOutputBytes)}
		}
	}
	if err := stream.Err(); err != nil || seen.status() != http.StatusOK {
		ans.retryAfter = retryAfter(seen.header(), o.now())
		return ans, openaiError(attempt, seen.status(), err)
	}
	ans.text = text.String()
	return ans, finished(finish, refused)
}

// finished decides by the finish reason whether an answer is whole.
func finished(finish string, refused bool) *Error {
	switch {
	case refused:
		return &Error{Reason: "the model refused to answer"}
	case finish == "stop":
		return nil
	case finish == "":
		return &Error{Reason: "the model's answer was cut off", Retryable: true}
	case finish == "length":
		return &Error{Reason: "the model's answer reached the token limit"}
	case finish == "content_filter":
		return &Error{Reason: "the model's answer was withheld by a content filter"}
	}
	return &Error{Reason: "the model did something else than answer"}
}
