package model

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"

	"aob.dev/writ/internal/clock"
	"aob.dev/writ/internal/egress"
)

// Defaults and limits of [OpenAI].
const (
	DefaultBaseURL = "https://api.openai.com/v1"
	DefaultTimeout = 2 * time.Minute // without a byte

	maxAttempts    = 3
	firstBackoff   = time.Second     // doubles; a server's Retry-After wins
	maxRetryAfter  = 2 * time.Minute // a longer wait is left to the caller
	maxOutputBytes = 4 << 20         // of text and arguments, thinking included
	maxCalls       = 256             // in one reply
)

// OpenAIConfig says which server and model to use. Nothing is read from the
// environment; zero values give the defaults above.
type OpenAIConfig struct {
	BaseURL string        // of any OpenAI-compatible server
	APIKey  string        // empty: none is sent
	Model   string        // required
	Timeout time.Duration // without a byte from the server
	// Defaults of requests, and the most that these may ask for; zero values: none.
	MaxTokens int
	Effort    string
	Parallel  *bool
	Images    bool // the model takes images of results
	// Extra are further members of each request.
	Extra map[string]any
	Log   *slog.Logger // nil: none
	// ContextTokens is the context of the model for one request with its reply; 0: unknown.
	ContextTokens int
	// Sent receives the body of each request before it is sent: exact JSON, except that the key
	// is removed if a message contains it, and that output_tools is added. Calls may be concurrent. nil: none.
	Sent func(body []byte)
}

// String names the model and never shows the key.
func (c OpenAIConfig) String() string { return "openai:" + c.Model }

// GoString is String, for %#v.
func (c OpenAIConfig) GoString() string { return c.String() }

// OpenAI is a remote model behind the chat completions API, with streaming and native tools. It
// tries a request up to three times when it may succeed later (rate limit, server failure,
// timeout, cut stream). Neither prompts nor keys are ever logged; an error has the server's own
// words only in its Detail, and never the key.
type OpenAI struct {
	cfg     OpenAIConfig
	svc     openai.ChatCompletionService
	now     func() time.Time
	wait    func(context.Context, time.Duration) error
	adapted atomic.Uint32 // to what the server refused
	doubted atomic.Bool   // a warning was given
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
	opts := []option.RequestOption{
		option.WithBaseURL(strings.TrimSuffix(cfg.BaseURL, "/") + "/"),
		option.WithMaxRetries(0), // retries are ours: see Respond
		option.WithHTTPClient(egress.Client(openaiWire{egress.Transport(cfg.BaseURL), cfg.Sent, cfg.APIKey})),
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	for name, v := range cfg.Extra {
		opts = append(opts, option.WithJSONSet(name, v))
	}
	if cfg.APIKey != "" {
		opts = append(opts, option.WithAPIKey(cfg.APIKey))
	}
	return &OpenAI{cfg: cfg, svc: openai.NewChatCompletionService(opts...), now: time.Now, wait: clock.Sleep}, nil
}

// Name is "openai:" and the model.
func (o *OpenAI) Name() string { return o.cfg.String() }

// ContextTokens returns the configured value.
func (o *OpenAI) ContextTokens() int { return o.cfg.ContextTokens }

// Respond implements Model. A request that the server refuses because of something that is not
// needed is sent again without it; later requests omit it, too.
func (o *OpenAI) Respond(ctx context.Context, r Request, on func(Event)) (*Response, error) {
	as := o.learned()
	req, err := o.encode(r, as)
	if err != nil {
		return nil, &Error{Reason: "the request to the model cannot be encoded", Err: err}
	}
	changes := func(more adaptations) bool {
		next, err := o.encode(r, as|more)
		return err == nil && (next.streamed != req.streamed || !bytes.Equal(next.body, req.body))
	}
	resp := &Response{Model: o.Name()}
	shown, begun := false, "" // begun is a text that goes on
	say := func(e Event) {
		if on != nil {
			shown = true
			on(e)
		}
	}
	withdraw := func() {
		if shown {
			on(Event{Reset: true})
			shown = false
			if begun != "" {
				say(Event{Text: begun})
			}
		}
	}
	end := func(got *reading) (*Response, error) {
		if got.atLimit {
			got.text.WriteString(cutMark)
			say(Event{Text: cutMark})
		}
		got.fill(resp, r)
		resp.Text = begun + resp.Text
		return resp, nil
	}
	begin := o.now()
	backoff := firstBackoff
	for n := 1; ; {
		got, failed := o.attempt(ctx, req, &reading{say: say, withdraw: withdraw, tools: r.Tools, choice: r.Choice})
		resp.Usage.Add(got.usage)
		resp.Usage.Latency = o.now().Sub(begin)
		if failed == nil {
			o.learn(ctx, as)
			o.doubt(ctx, len(req.body), got.usage)
			if got.atLimit && begun == "" && r.MaxTokens == 0 {
				begun = got.text.String()
				r.Messages = append(slices.Clip(r.Messages), Message{Role: RoleAssistant, Text: begun}, Message{Role: RoleUser, Text: askOn})
				req, _ = o.encode(r, as) // so were the others
				continue
			}
			return end(got)
		}
		more := got.failure.adaptation(changes)
		if got.unstreamed {
			more = noStream
		}
		if more != 0 { // does not count as an attempt
			as |= more
			req, _ = o.encode(r, as) // encoded before
			continue
		}
		delay, again := got.retryAfter, correctionOf(failed)
		switch {
		case again != "":
			r.Messages = append(slices.Clip(r.Messages), Message{Role: RoleUser, Text: again})
			req, _ = o.encode(r, as) // so were the others
		case delay == 0:
			delay = backoff
			backoff *= 2
		}
		if !failed.Retryable || n == maxAttempts || !o.worthWaiting(ctx, delay) || o.wait(ctx, delay) != nil {
			if begun == "" || ctx.Err() != nil {
				return resp, failed
			}
			withdraw() // what came since is not whole
			return end(&reading{atLimit: true})
		}
		n++
		withdraw()
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

// attempt sends the request once and reads the whole reply.
func (o *OpenAI) attempt(ctx context.Context, req encoded, got *reading) (*reading, *Error) {
	asked := ctx
	ctx, seen, end := attending(ctx, o.cfg.Timeout)
	defer end()
	var err error
	if req.streamed {
		err = o.readStream(ctx, req.params, got)
		got.unstreamed = err == nil && got.size == 0 && seen.status() == http.StatusOK && !strings.HasPrefix(seen.header().Get("Content-Type"), "text/event-stream")
	} else {
		err = o.readWhole(ctx, req.params, got)
	}
	if seen.status() == http.StatusOK && !got.unstreamed || seen.status() == 0 && errors.Is(asked.Err(), context.Canceled) { // a request that was given up costs, too
		got.estimate(len(req.body))
	}
	if err == nil && seen.status() == http.StatusOK {
		return got, got.finished()
	}
	got.failure = seen.failure(err)
	got.retryAfter = cmp.Or(egress.RetryAfter(seen.header(), o.now()), got.failure.retryAfter())
	if errors.Is(err, errTooLarge) {
		return got, &Error{Reason: errTooLarge.Error()}
	}
	return got, openaiError(ctx, got.failure, err, o.cfg.APIKey)
}

func (o *OpenAI) readStream(ctx context.Context, params openai.ChatCompletionNewParams, got *reading) error {
	stream := o.svc.NewStreaming(ctx, params)
	defer func() { _ = stream.Close() }()
	for stream.Next() {
		if err := got.chunk(stream.Current()); err != nil {
			return err
		}
	}
	return stream.Err()
}

func (o *OpenAI) readWhole(ctx context.Context, params openai.ChatCompletionNewParams, got *reading) error {
	c, err := o.svc.New(ctx, params)
	if err != nil {
		return err
	}
	return got.completion(c)
}

// A request with far more bytes than its tokens can have was cut by its server.
const (
	doubtedBytes    = 16 << 10
	mostBytesAToken = 8
)

// doubt warns once if the server seems to have cut a request to its own context.
func (o *OpenAI) doubt(ctx context.Context, size int, u Usage) {
	if !u.Estimated && size > doubtedBytes && size > mostBytesAToken*u.InputTokens && !o.doubted.Swap(true) {
		o.cfg.Log.WarnContext(ctx, "the model's server seems to cut requests: give it a larger context, or set context_tokens",
			slog.String("model", o.Name()), slog.Int("bytes", size), slog.Int("input_tokens", u.InputTokens))
	}
}
