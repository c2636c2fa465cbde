package model

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

func TestRetries(t *testing.T) {
	ok := says("fine")
	soon := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	tests := []struct {
		name    string
		replies []reply
		waits   []time.Duration
		resets  int
	}{
		{"429 with Retry-After", []reply{fails(429, "rate_limit_exceeded", "Retry-After", "7"), ok}, []time.Duration{7 * time.Second}, 0},
		{"429 with a date", []reply{fails(429, "", "Retry-After", soon.Add(9*time.Second).Format(http.TimeFormat)), ok}, []time.Duration{9 * time.Second}, 0},
		{"429 in milliseconds", []reply{fails(429, "", "Retry-After-Ms", "250", "Retry-After", "1"), ok}, []time.Duration{250 * time.Millisecond}, 0},
		{"500 twice", []reply{fails(500, ""), fails(503, ""), ok}, []time.Duration{time.Second, 2 * time.Second}, 0},
		{"502 without a body of the API", []reply{plain(502), ok}, []time.Duration{time.Second}, 0},
		{"stream cut by the network", []reply{cutOff, ok}, []time.Duration{time.Second}, 1},
		{"stream ends in the middle", []reply{stopsEarly, ok}, []time.Duration{time.Second}, 1},
		{"malformed event", []reply{malformed, ok}, []time.Duration{time.Second}, 1},
		{"nothing answered", []reply{says(""), ok}, []time.Duration{time.Second}, 0},
		{"only a thought", []reply{says("<think>hm, "), ok}, []time.Duration{time.Second}, 0},
		{"error inside the stream", []reply{errorEvent, ok}, []time.Duration{time.Second}, 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var waits []time.Duration
			o := newTestModel(t, newMock(t, tt.replies...), &waits)
			o.now = func() time.Time { return soon }
			var h collector
			r, err := o.Respond(t.Context(), ask(), h.on)
			if err != nil {
				t.Fatal(err)
			}
			if r.Text != "fine" || h.text() != "fine" || h.resets != tt.resets {
				t.Errorf("text %q, heard %q after %d resets, want %d", r.Text, h.text(), h.resets, tt.resets)
			}
			if d := cmp.Diff(tt.waits, waits); d != "" {
				t.Error(d)
			}
		})
	}
}

func plain(status int) reply {
	return func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "bad gateway: secret-prompt", status) }
}

func cutOff(w http.ResponseWriter, _ *http.Request) {
	begin(w, `well, `)
	panic(http.ErrAbortHandler)
}

func stopsEarly(w http.ResponseWriter, _ *http.Request) { begin(w, "well, fi") }

func malformed(w http.ResponseWriter, _ *http.Request) {
	begin(w, "well, fi")
	fmt.Fprint(w, "data: {\"choices\":[secret-prompt\n\n")
}

func errorEvent(w http.ResponseWriter, _ *http.Request) {
	begin(w, "well, fi")
	fmt.Fprint(w, `data: {"error":{"message":"overloaded while reading secret-prompt","type":"server_error"}}`+"\n\n")
}

func TestFinalErrors(t *testing.T) {
	tests := []struct {
		name      string
		replies   []reply
		retryable bool
		words     string
	}{
		{"three failures", []reply{fails(500, ""), fails(500, ""), fails(529, "")}, true, "HTTP 529"},
		{"cut three times", []reply{cutOff, stopsEarly, cutOff}, true, "broke off"},
		{"bad key", []reply{fails(401, "invalid_api_key")}, false, "HTTP 401 (some_error, invalid_api_key)"},
		{"bad request", []reply{fails(400, "no \x1b[31m word")}, false, "HTTP 400 (some_error)"},
		{"quota", []reply{fails(429, "insufficient_quota")}, false, "insufficient_quota"},
		{"an hour's wait", []reply{fails(429, "", "Retry-After", "3600")}, true, "HTTP 429"},
		{"redirect", []reply{func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://127.0.0.1:1/", http.StatusTemporaryRedirect)
		}}, false, "redirects"},
		{"refusal", []reply{refuses}, false, "refused"},
		{"length", []reply{cutBefore}, false, "token limit"},
		{"unknown end", []reply{ends("weird")}, false, `finish_reason "weird"`},
		{"content filter", []reply{ends("content_filter")}, false, "content filter"},
		{"tool call", []reply{calls("tool_calls")}, false, "something else"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := newTestModel(t, newMock(t, tt.replies...), nil).Respond(t.Context(), ask(), nil)
			wantError(t, err, tt.retryable, tt.words)
		})
	}
}

func cutBefore(w http.ResponseWriter, _ *http.Request) {
	begin(w, "<think>hm, ")
	end(w, "length")
}

func refuses(w http.ResponseWriter, _ *http.Request) {
	begin(w, "")
	delta(w, "refusal", "I cannot help with secret-prompt.")
	end(w, "stop")
}

func TestUsageOfFailedAttemptsCounts(t *testing.T) {
	r, err := newTestModel(t, newMock(t, cutBefore), nil).Respond(t.Context(), ask(), nil)
	wantError(t, err, false, "token limit")
	if r.Usage.OutputTokens != 7 {
		t.Errorf("usage %+v", r.Usage)
	}
}

func hangs(w http.ResponseWriter, r *http.Request) {
	begin(w, "well, ")
	<-r.Context().Done()
}

func TestHangingServer(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
	defer cancel()
	_, err := newTestModel(t, newMock(t, hangs), nil).Respond(ctx, ask(), nil)
	wantError(t, err, true, "in time")
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
}

func TestAttemptTimeout(t *testing.T) {
	o := newTestModel(t, newMock(t, hangs, hangs, hangs), nil)
	o.cfg.Timeout = 20 * time.Millisecond
	_, err := o.Respond(t.Context(), ask(), nil)
	wantError(t, err, true, "in time")
}

func TestNoWaitPastTheDeadline(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	_, err := newTestModel(t, newMock(t, fails(429, "", "Retry-After", "90")), nil).Respond(ctx, ask(), nil)
	wantError(t, err, true, "HTTP 429")
}

func TestUnreachable(t *testing.T) {
	m := newMock(t)
	o := newTestModel(t, m, nil)
	o.cfg.Timeout = time.Minute
	other, err := NewOpenAI(OpenAIConfig{BaseURL: "http://127.0.0.1:1/v1", APIKey: testKey, Model: "m"})
	if err != nil {
		t.Fatal(err)
	}
	other.wait = o.wait
	_, err = other.Respond(t.Context(), ask(), nil)
	wantError(t, err, true, "cannot be reached")
}

func answers(status int, body string) reply {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		fmt.Fprint(w, body)
	}
}

func TestOverflow(t *testing.T) {
	for body, overflow := range map[string]bool{
		`{"error":{"message":"too long","type":"invalid_request_error","param":"messages","code":"context_length_exceeded"}}`:      true,
		`{"error":{"message":"This model's maximum context length is 8192 tokens.","code":400}}`:                                   true,
		`{"error":{"message":"the request exceeds the available context","type":"exceed_context_size_error","n_ctx":4096}}`:        true,
		`[{"error":{"code":400,"message":"The input token count (70000) exceeds the maximum number of tokens allowed (32768)."}}]`: true,
		`{"object":"error","message":"prompt is too long: 210000 tokens > 200000 maximum"}`:                                        true,
		`{"error":{"message":"unknown member foo","type":"invalid_request_error"}}`:                                                false,
	} {
		_, err := newTestModel(t, newMock(t, answers(400, body)), nil).Respond(t.Context(), ask(), nil)
		wantError(t, err, false, "HTTP 400")
		var e *Error
		if errors.As(err, &e); e.Overflow != overflow {
			t.Errorf("%s: %+v", body, e)
		}
	}
	_, err := newTestModel(t, newMock(t, func(w http.ResponseWriter, _ *http.Request) {
		begin(w, "well, ")
		fmt.Fprint(w, `data: {"error":{"message":"context length exceeded","code":"context_length_exceeded"}}`+"\n\n")
	}), nil).Respond(t.Context(), ask(), nil)
	var e *Error
	if errors.As(err, &e); e == nil || !e.Overflow || e.Retryable {
		t.Errorf("within a stream: %+v", e)
	}
	limit := fails(429, "tokens", "Retry-After", "3600")
	_, err = newTestModel(t, newMock(t, limit), nil).Respond(t.Context(), ask(), nil)
	if errors.As(err, &e); e.Overflow {
		t.Errorf("a rate limit is no overflow: %+v", e)
	}
}

// TestDetail: operators see the server's text in any shape, users do not.
func TestDetail(t *testing.T) {
	for body, want := range map[string]string{
		`{"error":{"message":"no \u001b[31m such\nthing","type":"t","code":"c","param":"p"}}`: "HTTP 418 (t, c, p): no  [31m such thing",
		`{"error":"model is loading"}`:                                            "HTTP 418: model is loading",
		`{"detail":"Extra inputs are not permitted"}`:                             "HTTP 418: Extra inputs are not permitted",
		`{"message":"bad","code":7}`:                                              "HTTP 418: bad",
		`{"error":{"why":"x"}}`:                                                   `HTTP 418: {"error":{"why":"x"}}`,
		`upstream said no to ` + testKey + ` and ` + testKey:                      "HTTP 418: upstream said no to [key] and [key]",
		`{"error":{"message":"x","param":"` + testKey + `"}}`:                     "HTTP 418 ([key]): x",
		`{"why":"the key is ` + strings.ReplaceAll(testKey, "-", `\u002d`) + `"}`: `HTTP 418: {"why":"the key is [key]"}`,
		``:   "HTTP 418",
		`[]`: "HTTP 418: []",
	} {
		_, err := newTestModel(t, newMock(t, answers(418, body)), nil).Respond(t.Context(), ask(), nil)
		wantError(t, err, false, "refused the request")
		var e *Error
		if errors.As(err, &e); e.Detail != want {
			t.Errorf("%s: got %q, want %q", body, e.Detail, want)
		}
	}
	long := answers(418, strings.Repeat("é", 1000)+testKey)
	_, err := newTestModel(t, newMock(t, long), nil).Respond(t.Context(), ask(), nil)
	var e *Error
	if errors.As(err, &e); len(e.Detail) > 1024 || len(e.Detail) < 1000 || !utf8.ValidString(e.Detail) {
		t.Errorf("%d bytes of detail", len(e.Detail))
	}
}

// TestErrorUnderStatusOK: a server's error is an error whatever its status, and does not disable
// streams.
func TestErrorUnderStatusOK(t *testing.T) {
	down := answers(200, `{"error":{"message":"no provider","code":502}}`)
	m := newMock(t, down, down, says("fine"))
	o := newTestModel(t, m, nil)
	o.wait = func(context.Context, time.Duration) error { return context.Canceled }
	_, err := o.Respond(t.Context(), ask(), nil)
	wantError(t, err, true, "HTTP 200: no provider")
	if r, err := o.Respond(t.Context(), ask(), nil); err != nil || r.Text != "fine" || !m.got[2].Stream {
		t.Errorf("%+v, %v", r, err)
	}
}
