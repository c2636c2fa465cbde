package model

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/google/go-cmp/cmp"
)

const testKey = "sk-test-0123456789"

// newTestModel returns a model on the mock that records waits instead of waiting.
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

func ask() Request {
	cold := 0.0
	return Request{System: "secret-prompt", Messages: []Message{{Role: RoleUser, Text: "x"}}, Temperature: &cold}
}

// wantError checks the class of an error and that it shows no secret.
func wantError(t *testing.T, err error, retryable bool, words string) {
	t.Helper()
	var e *Error
	if !errors.As(err, &e) {
		t.Fatalf("got %v, want *Error", err)
	}
	if e.Retryable != retryable || !strings.Contains(Detail(e), words) {
		t.Errorf("got %q (retryable %v), want %q (retryable %v)", Detail(e), e.Retryable, words, retryable)
	}
	if strings.Contains(e.Detail, testKey) || len(e.Detail) > maxDetail || strings.ContainsFunc(e.Detail, unicode.IsControl) {
		t.Errorf("the detail is %q", e.Detail)
	}
	if strings.ContainsAny(e.Reason, "0123456789_") {
		t.Errorf("the reason is not in plain words: %s", e.Reason)
	}
	for _, secret := range []string{testKey, "secret-prompt"} {
		for _, shown := range []string{err.Error(), fmt.Sprintf("%+v", e), fmt.Sprintf("%#v", e)} {
			if strings.Contains(shown, secret) {
				t.Errorf("the error shows %s: %s", secret, shown)
			}
		}
	}
}

// collector gathers streamed text.
type collector struct {
	pieces []string
	resets int
}

func (h *collector) on(e Event) {
	if e.Reset {
		h.pieces = nil
		h.resets++
		return
	}
	if e.Tool == "" {
		h.pieces = append(h.pieces, e.Text)
	}
}

func (h *collector) text() string { return strings.Join(h.pieces, "") }

func TestRespond(t *testing.T) {
	m := newMock(t, says("naïve, but true"))
	o := newTestModel(t, m, nil)
	req := ask()
	req.Stop = []string{"END"}
	var h collector
	r, err := o.Respond(t.Context(), req, h.on)
	if err != nil {
		t.Fatal(err)
	}
	if r.Text != "naïve, but true" || len(r.Calls) != 0 || r.Model != "openai:m" {
		t.Errorf("response %+v", r)
	}
	if d := cmp.Diff([]string{"naïve,", " but true"}, h.pieces); d != "" {
		t.Error(d)
	}
	if r.Usage.InputTokens != 11 || r.Usage.OutputTokens != 7 || r.Usage.Latency <= 0 {
		t.Errorf("usage %+v", r.Usage)
	}
	got := m.got[0]
	if got.Messages[0].Role != "system" || *got.Messages[0].Content != "secret-prompt" || got.Messages[1].Role != "user" || *got.Messages[1].Content != "x" {
		t.Errorf("messages %+v", got.Messages)
	}
	if got.Model != "m" || got.Temperature == nil || *got.Temperature != 0 || !slices.Equal(got.Stop, req.Stop) || !got.Stream || got.Tools != nil {
		t.Errorf("request %+v", got)
	}
	if m.auth[0] != "Bearer "+testKey || o.Name() != "openai:m" {
		t.Errorf("authorization %s, name %s", m.auth[0], o.Name())
	}
}

// TestNothingIsSentUnasked: the request has no system message, temperature or stop unless set.
func TestNothingIsSentUnasked(t *testing.T) {
	m := newMock(t, says("y"))
	if _, err := newTestModel(t, m, nil).Respond(t.Context(), Request{Messages: []Message{{Role: RoleUser, Text: "x"}}}, nil); err != nil {
		t.Fatal(err)
	}
	if got := m.got[0]; len(got.Messages) != 1 || got.Temperature != nil || got.Stop != nil || got.ToolChoice != "" {
		t.Errorf("request %+v", got)
	}
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
	m := newMock(t, says("fine"), says("fine"))
	if _, err := newTestModel(t, m, nil).Respond(t.Context(), ask(), nil); err != nil {
		t.Fatal(err)
	}
	keyless, err := NewOpenAI(OpenAIConfig{BaseURL: m.url + "/", Model: "m"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := keyless.Respond(t.Context(), ask(), nil); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]string{"Bearer " + testKey, ""}, m.auth); d != "" {
		t.Error(d)
	}
}

// TestTemperatureRefusedLate sends a temperature until a server refuses it.
func TestTemperatureRefusedLate(t *testing.T) {
	for _, status := range []int{400, 422} {
		refusal := answers(status, `{"error":{"message":"Unsupported value: 'temperature' does not support 0 with this model.","type":"invalid_request_error"}}`)
		m := newMock(t, refusal, says("fine"), says("fine"))
		var waits []time.Duration
		o := newTestModel(t, m, &waits)
		for range 2 {
			if _, err := o.Respond(t.Context(), ask(), nil); err != nil {
				t.Fatal(err)
			}
		}
		if m.got[0].Temperature == nil || m.got[1].Temperature != nil || m.got[2].Temperature != nil || waits != nil {
			t.Errorf("HTTP %d: waits %v, requests %+v", status, waits, m.got)
		}
	}
	again := answers(400, `{"error":{"message":"no temperature"}}`)
	_, err := newTestModel(t, newMock(t, again, again), nil).Respond(t.Context(), ask(), nil)
	wantError(t, err, false, "no temperature")
}

// TestStreamRefused asks for a stream until a server refuses one.
func TestStreamRefused(t *testing.T) {
	refusal := answers(400, `{"error":{"message":"streaming is not supported","type":"invalid_request_error","param":"stream"}}`)
	whole := completes(`{"role":"assistant","content":"fine"}`, "stop")
	m := newMock(t, refusal, whole, whole)
	var waits []time.Duration
	o := newTestModel(t, m, &waits)
	for range 2 {
		if r, err := o.Respond(t.Context(), ask(), nil); err != nil || r.Text != "fine" {
			t.Fatal(r, err)
		}
	}
	if !m.got[0].Stream || m.got[1].Stream || m.got[2].Stream || waits != nil {
		t.Errorf("waits %v, requests %+v", waits, m.got)
	}
	_, err := newTestModel(t, newMock(t, refusal, refusal), nil).Respond(t.Context(), ask(), nil)
	wantError(t, err, false, "streaming is not supported")
}

// TestServerWithoutStreams answers a streaming request with a whole reply; no more streams are
// requested from it.
func TestServerWithoutStreams(t *testing.T) {
	whole := completes(`{"role":"assistant","content":"<think>hm</think> fine","tool_calls":[
		{"id":"a","type":"function","function":{"name":"f","arguments":"{\"n\":1}"}},{"type":"function","function":{"name":"g","arguments":""}}]}`, "tool_calls")
	m := newMock(t, whole, whole, whole)
	o := newTestModel(t, m, nil)
	for range 2 {
		var h collector
		r, err := o.Respond(t.Context(), withTools(), h.on)
		if err != nil {
			t.Fatal(err)
		}
		want := []Call{{"a", "f", `{"n":1}`}, {"call00001", "g", "{}"}}
		if d := cmp.Diff(want, r.Calls); d != "" || r.Text != "fine" || h.text() != "fine" || r.Usage.OutputTokens != 7 {
			t.Errorf("%+v, heard %q\n%s", r, h.text(), d)
		}
	}
	if !m.got[0].Stream || m.got[1].Stream || m.got[2].Stream {
		t.Errorf("streams asked for: %v, %v, %v", m.got[0].Stream, m.got[1].Stream, m.got[2].Stream)
	}
}

// TestStreamUnderAnotherName reads a stream with another content type.
func TestStreamUnderAnotherName(t *testing.T) {
	unnamed := func(next reply) reply {
		return func(w http.ResponseWriter, r *http.Request) { next(otherType{w}, r) }
	}
	m := newMock(t, unnamed(says("well, fine")), unnamed(cutOff), says("fine"))
	o := newTestModel(t, m, nil)
	for _, resets := range []int{0, 1} {
		var h collector
		r, err := o.Respond(t.Context(), ask(), h.on)
		if err != nil || h.text() != r.Text || h.resets != resets || !m.got[len(m.got)-1].Stream {
			t.Errorf("%+v, %v, heard %q after %d resets", r, err, h.text(), h.resets)
		}
	}
}

// otherType is a response with another content type than its handler sets.
type otherType struct{ http.ResponseWriter }

func (o otherType) Write(b []byte) (int, error) {
	o.Header().Set("Content-Type", "text/plain")
	return o.ResponseWriter.Write(b)
}

func (o otherType) Flush() { o.ResponseWriter.(http.Flusher).Flush() }

func TestReplyWithoutEnd(t *testing.T) {
	flood := func(w http.ResponseWriter, _ *http.Request) {
		begin(w, "")
		for range 70 {
			delta(w, "content", strings.Repeat("x", 64<<10))
		}
		end(w, "stop")
	}
	_, err := newTestModel(t, newMock(t, flood), nil).Respond(t.Context(), ask(), nil)
	var e *Error
	if !errors.As(err, &e) || e.Retryable || !strings.Contains(e.Reason, "larger") {
		t.Errorf("got %v", err)
	}
	crowd := func(w http.ResponseWriter, _ *http.Request) {
		begin(w, "")
		for i := range maxCalls + 1 {
			called(w, fmt.Sprintf(`[{"index":%d,"id":"c%d","function":{"name":"f","arguments":""}}]`, i, i))
		}
		end(w, "tool_calls")
	}
	if _, err := newTestModel(t, newMock(t, crowd), nil).Respond(t.Context(), withTools(), nil); !errors.As(err, &e) || e.Retryable || !strings.Contains(e.Reason, "larger") {
		t.Errorf("got %v", err)
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
