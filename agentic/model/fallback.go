package model

import (
	"cmp"
	"context"
	"errors"
	"strings"
)

// fallback asks its models in turn.
type fallback []Model

var _ Model = fallback(nil)

// Fallback returns first, with others to ask if it gives no answer: if the same request may
// succeed later, the model no longer exists, its account is used up, or its server denies access.
// An error in the request itself would recur with the others, so it is returned. Once ctx has
// ended no other model is asked.
func Fallback(first Model, others ...Model) Model {
	if len(others) == 0 {
		return first
	}
	return append(fallback{first}, others...)
}

// Name is the first model's; the response names the model that answered.
func (f fallback) Name() string { return f[0].Name() }

// ContextTokens is the smallest context of its models.
func (f fallback) ContextTokens() (least int) {
	for _, m := range f {
		if n := ContextTokens(m); n > 0 {
			least = min(cmp.Or(least, n), n)
		}
	}
	return least
}

// Respond implements Model. Text of a model that failed is withdrawn. An error is that of the
// last model, with the errors of the others in its Detail.
func (f fallback) Respond(ctx context.Context, r Request, on func(Event)) (*Response, error) {
	shown := false
	watch := func(e Event) {
		shown = !e.Reset && (shown || e.Text != "")
		if on != nil {
			on(e)
		}
	}
	var before []Attempt
	var earlier []string
	for i := 0; ; i++ {
		m := f[i]
		if shown {
			watch(Event{Reset: true})
		}
		resp, err := m.Respond(ctx, r, watch)
		answer := Response{Model: m.Name()}
		if resp != nil {
			answer = *resp
		}
		answer.Failed = before
		if err == nil {
			return &answer, nil
		}
		var e *Error
		if !errors.As(err, &e) {
			e = &Error{Reason: "the model failed", Err: err}
		}
		if i == len(f)-1 || ctx.Err() != nil || !e.Retryable && !e.Unserved {
			return &answer, e.after(earlier, m.Name())
		}
		before = append(before, Attempt{cmp.Or(answer.Model, m.Name()), answer.Usage})
		earlier = append(earlier, m.Name()+": "+Detail(e))
	}
}

// after returns e, of the model with this name, with the errors of earlier models.
func (e *Error) after(earlier []string, name string) *Error {
	if len(earlier) == 0 {
		return e
	}
	all := *e
	all.Detail = strings.Join(append(earlier, name+": "+Detail(e)), "; ")
	return &all
}
