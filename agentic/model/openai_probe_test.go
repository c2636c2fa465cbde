package model

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
)

// refusing is a server that refuses requests by what they ask for, and answers others.
func refusing(t *testing.T, m *mock, names ...string) reply {
	t.Helper()
	return func(w http.ResponseWriter, r *http.Request) {
		m.mu.Lock()
		got := m.got[len(m.got)-1]
		m.mu.Unlock()
		asked := map[string]bool{
			"tools": len(got.Tools) > 0, "stream": got.Stream, "temperature": got.Temperature != nil, "response_format": got.ResponseFormat != nil,
		}
		for _, name := range names {
			if asked[name] {
				answers(http.StatusBadRequest, `{"error":{"message":"'`+name+`' is not supported","type":"invalid_request_error","param":"`+name+`"}}`)(w, r)
				return
			}
		}
		if got.Stream {
			says(`{"ready":true}`)(w, r)
			return
		}
		completes(`{"role":"assistant","content":"{\"ready\":true}"}`, "stop")(w, r)
	}
}

func TestProbe(t *testing.T) {
	tests := []struct {
		refused  []string
		requests int
		want     string
	}{
		{nil, 4, "openai:m takes tools, streaming, temperature, json"},
		{[]string{"temperature"}, 4, "openai:m takes tools, streaming, json; refuses temperature"},
		{[]string{"stream"}, 5, "openai:m takes tools, temperature, json; refuses streaming"},
		{[]string{"stream", "tools", "response_format"}, 5, "openai:m takes temperature; refuses tools, streaming, json"},
	}
	for _, tt := range tests {
		m := newMock(t)
		for range tt.requests + 1 {
			m.replies = append(m.replies, refusing(t, m, tt.refused...))
		}
		o := newTestModel(t, m, nil)
		p, err := o.Probe(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if p.String() != tt.want || len(m.got) != tt.requests {
			t.Errorf("after %d requests: %s, want %s after %d", len(m.got), p, tt.want, tt.requests)
		}
		answered := tt.requests - len(tt.refused)
		if p.Usage.InputTokens != 11*answered || p.Usage.OutputTokens != 7*answered || p.Usage.Latency <= 0 {
			t.Errorf("usage %+v, want that of %d answers", p.Usage, answered)
		}
		for _, f := range []Finding{p.Tools, p.Streaming, p.Temperature, p.JSON} {
			if (f.Answer == Accepted) != (f.Detail == "") || f.Answer == Refused && !strings.Contains(f.Detail, "is not supported") {
				t.Errorf("%s: %+v", p, f)
			}
		}
		r, err := o.Respond(t.Context(), ask(), nil)
		if err != nil || r.Text != `{"ready":true}` {
			t.Fatalf("%+v, %v", r, err)
		}
		last := m.got[len(m.got)-1]
		if last.Stream != (p.Streaming.Answer == Accepted) || (last.Temperature != nil) != (p.Temperature.Answer == Accepted) {
			t.Errorf("%s, and then was sent %+v", p, last)
		}
	}
}

// TestProbeOfAServerThatFails finds nothing out, and keeps nothing in mind.
func TestProbeOfAServerThatFails(t *testing.T) {
	for name, tt := range map[string]struct {
		replies   []reply
		retryable bool
		words     string
	}{
		"wrong key":          {[]reply{fails(401, "invalid_api_key")}, false, "denied access"},
		"no such model":      {[]reply{fails(404, "model_not_found"), fails(404, "model_not_found")}, false, "no such model"},
		"failing":            {[]reply{fails(500, "")}, true, "failed"},
		"cut":                {[]reply{cutOff}, true, "broke off"},
		"refuses everything": {[]reply{fails(400, ""), fails(400, "")}, false, "refused the request"},
	} {
		m := newMock(t, tt.replies...)
		o := newTestModel(t, m, nil)
		p, err := o.Probe(t.Context())
		wantError(t, err, tt.retryable, tt.words)
		if p.String() != "openai:m did not say whether it takes tools, streaming, temperature, json" || len(m.got) != len(tt.replies) {
			t.Errorf("%s: %s after %d requests", name, p, len(m.got))
		}
		if o.noStreaming.Load() || o.noTemperature.Load() {
			t.Errorf("%s: something is left out", name)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := newTestModel(t, newMock(t), nil).Probe(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

// TestProbeInDoubt: what fails for another reason is not refused.
func TestProbeInDoubt(t *testing.T) {
	m := newMock(t, says("yes"), fails(503, ""), fails(404, ""), fails(429, ""), says("fine"))
	o := newTestModel(t, m, nil)
	p, err := o.Probe(t.Context())
	if err != nil || p.String() != "openai:m takes streaming; refuses json; did not say whether it takes tools, temperature" {
		t.Errorf("%s, %v", p, err)
	}
	if _, err := o.Respond(t.Context(), ask(), nil); err != nil || m.got[4].Temperature == nil {
		t.Errorf("sent %+v, %v", m.got[4], err)
	}
}

// TestProbeAnswers: any answer will do, and one that is no stream says that there are none.
func TestProbeAnswers(t *testing.T) {
	m := newMock(t, ends("length"), says(""), ends("content_filter"), refuses)
	if p, err := newTestModel(t, m, nil).Probe(t.Context()); err != nil || p.String() != "openai:m takes tools, streaming, temperature, json" {
		t.Errorf("%s, %v", p, err)
	}
	whole := completes(`{"role":"assistant","content":"yes"}`, "stop")
	m = newMock(t, whole, whole, whole, whole)
	o := newTestModel(t, m, nil)
	o.noTemperature.Store(true) // the server has refused one
	if p, err := o.Probe(t.Context()); err != nil || p.String() != "openai:m takes tools, json; refuses streaming, temperature" {
		t.Errorf("%s, %v", p, err)
	}
}
