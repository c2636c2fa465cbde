package model

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

const testKey = "sk-test-0123456789"

// newTestModel is a model on the mock that notes waits instead of waiting.
func newTestModel(t *testing.T, m *mock, waits *[]time.Duration) *OpenAI {
	t.Helper()
	o, err := NewOpenAI(OpenAIConfig{BaseURL: m.url, APIKey: testKey, Model: "m"})
	if err != nil {
		t.Fatal(err)
	}
	o.wait = func(ctx context.Context, d time.Duration) error {
		if waits != nil {
			*waits = append(*waits, d)
		}
		return ctx.Err()
	}
	return o
}

func selectRequest() Request {
	return Request{
		Purpose: SelectSkills, Instructions: "secret-prompt", Input: json.RawMessage(`{"task":"x"}`),
		Schema: OutputSchema(SelectSkills),
	}
}

// wantError checks the class of an error and that it shows no secret.
func wantError(t *testing.T, err error, retryable bool, words string) {
	t.Helper()
	var e *Error
	if !errors.As(err, &e) {
		t.Fatalf("got %v, want *Error", err)
	}
	if e.Retryable != retryable || !strings.Contains(err.Error(), words) {
		t.Errorf("got %q (retryable %v), want %q (retryable %v)", err, e.Retryable, words, retryable)
	}
	for _, secret := range []string{testKey, "secret-prompt"} {
		for _, shown := range []string{err.Error(), fmt.Sprintf("%+v", e), fmt.Sprintf("%#v", e)} {
			if strings.Contains(shown, secret) {
				t.Errorf("the error shows %s: %s", secret, shown)
			}
		}
	}
}

func TestComplete(t *testing.T) {
	m := newMock(t, says(`{"skills":["naïve","b"]}`))
	o := newTestModel(t, m, nil)
	req := selectRequest()
	req.MaxTokens = 100
	r, err := o.Complete(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	if string(r.Output) != `{"skills":["naïve","b"]}` {
		t.Errorf("output %s", r.Output)
	}
	if r.Usage.InputTokens != 11 || r.Usage.OutputTokens != 7 || r.Usage.Latency <= 0 {
		t.Errorf("usage %+v", r.Usage)
	}
	got := m.got[0]
	if got.Messages[0].Content != "secret-prompt" || got.Messages[1].Content != `{"task":"x"}` {
		t.Errorf("messages %+v", got.Messages)
	}
	if got.Model != "m" || got.Temperature == nil || *got.Temperature != 0 || got.MaxCompletionTokens != 100 {
		t.Errorf("request %+v", got)
	}
	if got.ResponseFormat.JSONSchema.Name != "select_skills" || m.auth[0] != "Bearer "+testKey {
		t.Errorf("format %s, authorization %s", got.ResponseFormat.JSONSchema.Name, m.auth[0])
	}
	if o.Name() != "openai:m" {
		t.Errorf("name %s", o.Name())
	}
}

// TestEveryPurposeIsStrict sends each schema to the server, which checks it.
func TestEveryPurposeIsStrict(t *testing.T) {
	for _, p := range purposes {
		o := newTestModel(t, newMock(t, says(`{}`)), nil)
		req := Request{Purpose: p, Input: json.RawMessage(`{}`), Schema: OutputSchema(p)}
		if _, err := o.Complete(t.Context(), req); err != nil {
			t.Errorf("%s: %v", p, err)
		}
	}
}

func TestFreeFormInputTravelsAsText(t *testing.T) {
	text := `{"action":"call","skill":"rank","input":"{\"n\":9007199254740993,\"q\":\"<&>\"}","reason":"","suggestion":""}`
	m := newMock(t, says(text))
	r, err := newTestModel(t, m, nil).Complete(t.Context(), Request{Purpose: ChooseAction, Input: json.RawMessage(`{}`), Schema: OutputSchema(ChooseAction)})
	if err != nil {
		t.Fatal(err)
	}
	var out ActionOutput
	if err := json.Unmarshal(r.Output, &out); err != nil {
		t.Fatal(err)
	}
	if string(out.Input) != `{"n":9007199254740993,"q":"<&>"}` {
		t.Errorf("input %s", out.Input)
	}
	in := m.got[0].ResponseFormat.JSONSchema.Schema["properties"].(map[string]any)["input"].(map[string]any)
	if in["type"] != "string" {
		t.Errorf("the server saw input as %v", in)
	}
}

func TestRetries(t *testing.T) {
	ok := says(`{"skills":[]}`)
	soon := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	tests := []struct {
		name    string
		replies []reply
		waits   []time.Duration
	}{
		{"429 with Retry-After", []reply{fails(429, "rate_limit_exceeded", "Retry-After", "7"), ok}, []time.Duration{7 * time.Second}},
		{"429 with a date", []reply{fails(429, "", "Retry-After", soon.Add(9*time.Second).Format(http.TimeFormat)), ok}, []time.Duration{9 * time.Second}},
		{"429 in milliseconds", []reply{fails(429, "", "Retry-After-Ms", "250", "Retry-After", "1"), ok}, []time.Duration{250 * time.Millisecond}},
		{"500 twice", []reply{fails(500, ""), fails(503, ""), ok}, []time.Duration{time.Second, 2 * time.Second}},
		{"502 without a body of the API", []reply{plain(502), ok}, []time.Duration{time.Second}},
		{"stream cut by the network", []reply{cutOff, ok}, []time.Duration{time.Second}},
		{"stream ends in the middle", []reply{stopsEarly, ok}, []time.Duration{time.Second}},
		{"malformed event", []reply{malformed, ok}, []time.Duration{time.Second}},
		{"error inside the stream", []reply{errorEvent, ok}, []time.Duration{time.Second}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var waits []time.Duration
			o := newTestModel(t, newMock(t, tt.replies...), &waits)
			o.now = func() time.Time { return soon }
			r, err := o.Complete(t.Context(), selectRequest())
			if err != nil {
				t.Fatal(err)
			}
			if string(r.Output) != `{"skills":[]}` {
				t.Errorf("output %s", r.Output)
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
	begin(w, `{"skills":["a",`)
	panic(http.ErrAbortHandler)
}

func stopsEarly(w http.ResponseWriter, _ *http.Request) { begin(w, `{"skills":[]}`) }

func malformed(w http.ResponseWriter, _ *http.Request) {
	begin(w, `{"skills":[]}`)
	fmt.Fprint(w, "data: {\"choices\":[secret-prompt\n\n")
}

func errorEvent(w http.ResponseWriter, _ *http.Request) {
	begin(w, `{"skills":[]}`)
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
		{"length", []reply{ends("length")}, false, "token limit"},
		{"content filter", []reply{ends("content_filter")}, false, "content filter"},
		{"tool call", []reply{ends("tool_calls")}, false, "something else"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := newTestModel(t, newMock(t, tt.replies...), nil).Complete(t.Context(), selectRequest())
			wantError(t, err, tt.retryable, tt.words)
		})
	}
}

func refuses(w http.ResponseWriter, _ *http.Request) {
	begin(w, "")
	delta(w, "refusal", "I cannot help with secret-prompt.")
	end(w, "stop")
}

func TestUsageOfFailedAttemptsCounts(t *testing.T) {
	r, err := newTestModel(t, newMock(t, ends("length")), nil).Complete(t.Context(), selectRequest())
	wantError(t, err, false, "token limit")
	if r.Usage.OutputTokens != 7 {
		t.Errorf("usage %+v", r.Usage)
	}
}

func hangs(w http.ResponseWriter, r *http.Request) {
	begin(w, `{"skills":`)
	<-r.Context().Done()
}

func TestHangingServer(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
	defer cancel()
	_, err := newTestModel(t, newMock(t, hangs), nil).Complete(ctx, selectRequest())
	wantError(t, err, true, "in time")
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
}

func TestAttemptTimeout(t *testing.T) {
	o := newTestModel(t, newMock(t, hangs, hangs, hangs), nil)
	o.cfg.Timeout = 20 * time.Millisecond
	_, err := o.Complete(t.Context(), selectRequest())
	wantError(t, err, true, "in time")
}

func TestNoWaitPastTheDeadline(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	_, err := newTestModel(t, newMock(t, fails(429, "", "Retry-After", "90")), nil).Complete(ctx, selectRequest())
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
	_, err = other.Complete(t.Context(), selectRequest())
	wantError(t, err, true, "cannot be reached")
}

func TestEnvironmentDoesNotLeak(t *testing.T) {
	trap := newMock(t) // any request to it fails the test
	for name, v := range map[string]string{
		"OPENAI_API_KEY": "poison", "OPENAI_ADMIN_KEY": "poison", "OPENAI_BASE_URL": trap.url, "OPENAI_ORG_ID": "poison",
		"OPENAI_PROJECT_ID": "poison", "OPENAI_CUSTOM_HEADERS": "X-Poison: poison", "OPENAI_WEBHOOK_SECRET": "poison",
		"HTTP_PROXY": trap.url, "HTTPS_PROXY": trap.url, "ALL_PROXY": trap.url,
	} {
		t.Setenv(name, v)
	}
	m := newMock(t, says(`{"skills":[]}`), says(`{"skills":[]}`))
	if _, err := newTestModel(t, m, nil).Complete(t.Context(), selectRequest()); err != nil {
		t.Fatal(err)
	}
	keyless, err := NewOpenAI(OpenAIConfig{BaseURL: m.url + "/", Model: "m"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := keyless.Complete(t.Context(), selectRequest()); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]string{"Bearer " + testKey, ""}, m.auth); d != "" {
		t.Error(d)
	}
}

func TestNoTemperature(t *testing.T) {
	m := newMock(t, says(`{"skills":[]}`))
	o := newTestModel(t, m, nil)
	o.cfg.NoTemperature = true
	if _, err := o.Complete(t.Context(), selectRequest()); err != nil {
		t.Fatal(err)
	}
	if m.got[0].Temperature != nil {
		t.Error("a temperature was sent")
	}
}

func TestNewOpenAIRefuses(t *testing.T) {
	for _, c := range []OpenAIConfig{
		{}, {Model: "m", BaseURL: "ftp://x/"}, {Model: "m", BaseURL: "https://"}, {Model: "m", BaseURL: "https://u:hunter2@x/v1"}, {Model: "m", BaseURL: "https://x/v1?key=hunter2"},
	} {
		if _, err := NewOpenAI(c); err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%v: %v", c, err)
		}
	}
	c := OpenAIConfig{Model: "m", APIKey: testKey}
	if s := fmt.Sprintf("%v %+v %#v %s", c, c, c, c); strings.Contains(s, testKey) {
		t.Errorf("the key is shown: %s", s)
	}
}
