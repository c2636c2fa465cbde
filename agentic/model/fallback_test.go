package model

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
)

var usedUp = Usage{InputTokens: 10, OutputTokens: 1, Latency: 5}

// scripted sends its text in pieces, and then fails or not.
type scripted struct {
	name   string
	pieces []string
	err    error
	during func() // before it ends
	calls  int
}

func (s *scripted) Name() string { return s.name }

func (s *scripted) Respond(_ context.Context, _ Request, on func(Event)) (*Response, error) {
	s.calls++
	r := &Response{Model: s.name, Usage: usedUp}
	for _, p := range s.pieces {
		r.Text += p
		if on != nil {
			on(Event{Text: p})
		}
	}
	if s.during != nil {
		s.during()
	}
	return r, s.err
}

var (
	busy     = &Error{Reason: "too much to do", Detail: "HTTP 429: slow down", Retryable: true}
	gone     = &Error{Reason: "no such model", Unserved: true}
	refused  = &Error{Reason: "refused", Detail: "HTTP 400: no"}
	overflow = &Error{Reason: "too long", Overflow: true}
)

func TestFallback(t *testing.T) {
	for _, first := range []*Error{busy, gone} {
		a := &scripted{name: "a:a", pieces: []string{"we", "ll"}, err: first}
		b := &scripted{name: "b:b", err: busy}
		c := &scripted{name: "c:c", pieces: []string{"fine"}}
		d := &scripted{name: "d:d"}
		m := Fallback(a, b, c, d)
		for _, streamed := range []bool{true, false} {
			var h collector
			on := h.on
			if !streamed {
				on = nil
			}
			r, err := m.Respond(t.Context(), ask(), on)
			if err != nil {
				t.Fatal(err)
			}
			if r.Text != "fine" || r.Model != "c:c" || r.Usage != usedUp || !slices.Equal(r.Failed, []Attempt{{"a:a", usedUp}, {"b:b", usedUp}}) {
				t.Errorf("response %+v", r)
			}
			if streamed && (h.text() != "fine" || h.resets != 1) {
				t.Errorf("heard %q after %d resets", h.text(), h.resets)
			}
		}
		if m.Name() != "a:a" || d.calls != 0 {
			t.Errorf("name %s, the last was asked %d times", m.Name(), d.calls)
		}
	}
	a := &scripted{name: "a:a"}
	if Fallback(a) != Model(a) {
		t.Error("one model falls back on none")
	}
}

// TestNoFallback: an error in the request would recur with other models.
func TestNoFallback(t *testing.T) {
	for _, first := range []error{refused, overflow, errors.New("unknown")} {
		b := &scripted{name: "b:b"}
		r, err := Fallback(&scripted{name: "a:a", err: first}, b).Respond(t.Context(), ask(), nil)
		if !errors.Is(err, first) || b.calls != 0 || r.Usage.InputTokens != 10 {
			t.Errorf("%v, asked %d times, %+v", err, b.calls, r)
		}
		var e *Error
		if !errors.As(err, &e) {
			t.Errorf("%v is no *Error", err)
		}
	}
}

func TestNoFallbackAfterTheEnd(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	b := &scripted{name: "b:b"}
	_, err := Fallback(&scripted{name: "a:a", err: busy, during: cancel}, b).Respond(ctx, ask(), nil)
	if !errors.Is(err, busy) || b.calls != 0 {
		t.Errorf("%v, asked %d times", err, b.calls)
	}
}

func TestFallbackFails(t *testing.T) {
	r, err := Fallback(&scripted{name: "a:a", pieces: []string{"x"}, err: busy}, &scripted{name: "b:b", err: gone}, &scripted{name: "c:c", err: refused}).Respond(t.Context(), ask(), nil)
	var e *Error
	if !errors.As(err, &e) || e.Reason != "refused" || e.Retryable {
		t.Fatalf("got %v", err)
	}
	if want := "a:a: too much to do (HTTP 429: slow down); b:b: no such model; c:c: refused (HTTP 400: no)"; e.Detail != want {
		t.Errorf("detail %q, want %q", e.Detail, want)
	}
	if r.Usage != usedUp || len(r.Failed) != 2 || refused.Detail != "HTTP 400: no" {
		t.Errorf("usage %+v, and the model's own error now says %q", r.Usage, refused.Detail)
	}
}

// TestFallbackFromAServer goes from a server without the model to one that cuts its
// stream and then answers.
func TestFallbackFromAServer(t *testing.T) {
	first := newTestModel(t, newMock(t, fails(404, "model_not_found")), nil)
	second := newTestModel(t, newMock(t, cutOff, says("fine")), nil)
	var h collector
	r, err := Fallback(first, second).Respond(t.Context(), ask(), h.on)
	if err != nil || r.Text != "fine" || h.text() != "fine" || h.resets != 1 {
		t.Errorf("%+v, %v, heard %q after %d resets", r, err, h.text(), h.resets)
	}
	busy := newTestModel(t, newMock(t, cutOff, cutOff, cutOff), nil)
	third := newTestModel(t, newMock(t, says("fine")), nil)
	h = collector{}
	if r, err := Fallback(busy, third).Respond(t.Context(), ask(), h.on); err != nil || r.Text != "fine" || h.text() != "fine" || h.resets != 3 {
		t.Errorf("%+v, %v, heard %q after %d resets", r, err, h.text(), h.resets)
	}
	decommissioned := newTestModel(t, newMock(t, fails(400, "model_decommissioned")), nil)
	_, err = decommissioned.Respond(t.Context(), ask(), nil)
	if e, ok := errors.AsType[*Error](err); !ok || !e.Unserved || strings.Contains(err.Error(), "HTTP") {
		t.Errorf("got %v", err)
	}
}
