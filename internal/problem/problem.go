// Package problem is the error answer of every HTTP listener: RFC 9457 problem details.
//
//	HTTP/1.1 403 Forbidden
//	Content-Type: application/problem+json
//
//	{"type":"https://aob.dev/codes/RBAC_FORBIDDEN","title":"the actor lacks the capability",
//	 "status":403,"code":"RBAC_FORBIDDEN","pointer":"/tenant_id","detail":"…","hint":"…",
//	 "retryable":false,"intent_id":"sha256:…","trace_id":"…"}
//
// The code is one of the closed set of package intents and decides the status. Internal
// errors are never shown: an error that is not a refusal becomes INTERNAL without detail.
package problem

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"

	"aob.dev/writ/intents"
	"aob.dev/writ/schemas"
)

// ContentType of the body.
const ContentType = "application/problem+json"

// typePrefix makes a code the problem's type, a page of the documentation.
const typePrefix = "https://aob.dev/codes/"

// Problem is one refusal or failure. It is an error, so that handlers can return
// it.
type Problem struct { //nolint:errname // a problem first; an error so that handlers can return it
	Type      string       `json:"type"`
	Title     string       `json:"title"`
	Status    int          `json:"status"`
	Code      intents.Code `json:"code"`
	Pointer   string       `json:"pointer,omitempty"` // JSON Pointer into the request
	Detail    string       `json:"detail,omitempty"`
	Hint      string       `json:"hint,omitempty"`
	Retryable bool         `json:"retryable"`
	IntentID  string       `json:"intent_id,omitempty"`
	TraceID   string       `json:"trace_id,omitempty"`
	PlanID    string       `json:"plan_id,omitempty"` // of SESSION_BUSY, and of a request that a stop leaves: the plan that is meant

	PolicyIDs  []string            `json:"policy_ids,omitempty"`
	Violations []schemas.Violation `json:"violations,omitempty"`

	// For a recorded intent, in the router's answer to its submitter: the position of the
	// record, the decision, and how the intent ended.
	Position *int64            `json:"position,omitempty"`
	Decision *intents.Decision `json:"decision,omitempty"`
	Outcome  *intents.Outcome  `json:"outcome,omitempty"`
	Receipt  string            `json:"receipt,omitempty"`

	// For a batch: the index of the intent that stopped it, and the answer to each intent if
	// the batch was accepted.
	Index   *int              `json:"index,omitempty"`
	Answers []*intents.Answer `json:"answers,omitempty"`

	RetryAfter time.Duration `json:"-"` // the header Retry-After; 0: none
}

func (p *Problem) Error() string {
	text := cmp.Or(p.Detail, p.Title) // of something between, such as a proxy: neither
	if text == "" {
		return string(p.Code)
	}
	return string(p.Code) + ": " + text
}

// New makes the problem of a code. Pointer and detail may be empty. They must not contain
// values of the request.
func New(code intents.Code, pointer, detail string) *Problem {
	i := code.Info()
	return &Problem{
		Type: typePrefix + string(i.Code), Title: i.Title, Status: i.Status, Code: i.Code,
		Pointer: pointer, Detail: detail, Hint: i.Hint, Retryable: i.Retryable,
	}
}

// FromError is the problem of an error: the error itself if it is one, the problem of a refusal,
// or else INTERNAL.
func FromError(err error) *Problem {
	var p *Problem
	if errors.As(err, &p) {
		return p
	}
	var r *intents.Refusal
	if !errors.As(err, &r) {
		return New(intents.Internal, "", "")
	}
	p = New(r.Code, r.Pointer, r.Reason)
	p.PolicyIDs = r.PolicyIDs
	p.Violations, p.RetryAfter = r.Violations, r.RetryAfter
	if r.Hint != "" {
		p.Hint = r.Hint
	}
	return p
}

// retryStopped is when a service that stops is expected to be back.
const retryStopped = 5 * time.Second

// Stopped is the answer to a request whose process stops before it knows the result. The intent and
// the plan are named where they are known.
func Stopped(intentID, planID string) *Problem {
	p := New(intents.InFlight, "", "the server stops, and waits for this no longer; what it has recorded goes on after its restart")
	p.Status, p.RetryAfter, p.IntentID, p.PlanID = http.StatusServiceUnavailable, retryStopped, intentID, planID
	switch {
	case planID != "":
		p.Hint = "after the restart follow it: GET /agent/plans/" + planID + "; if there is no such plan, nothing was accepted: send it again"
	case intentID != "":
		p.Hint = "after the restart ask for it: GET /v1/intents/" + intentID + "; if there is no such intent, nothing was accepted: send it again"
	default:
		p.Hint = "send it again after the restart"
	}
	return p
}

// ForSigner replaces the code's default hint by one for the signer of the intent.
func (p *Problem) ForSigner() *Problem {
	if i := p.Code.Info(); p.Hint == i.Hint {
		p.Hint = i.SignerHint()
	}
	return p
}

// OfAnswer is the problem of an intent's answer; nil if the intent is done.
func OfAnswer(a *intents.Answer) *Problem {
	if a.Code == intents.OK {
		return nil
	}
	p := New(a.Code, a.Pointer, a.Reason)
	p.IntentID, p.TraceID, p.PlanID, p.Violations = a.IntentID, a.TraceID, a.PlanID, a.Violations
	p.RetryAfter = time.Duration(a.RetryAfter) * time.Second
	if a.Hint != "" {
		p.Hint = a.Hint
	}
	if d := a.Decision; d != nil {
		p.PolicyIDs = d.PolicyIDs
		if p.Pointer == "" {
			p.Pointer = d.Pointer
		}
	}
	if o := a.Outcome; o != nil {
		p.Retryable = o.Retryable // its executor knows better than the code
		p.saysWhen(o)
	}
	return p
}

// saysWhen takes the retry time from an outcome whose executor gave it; its reason has it, too, so
// nothing is added.
func (p *Problem) saysWhen(o *intents.Outcome) {
	var said struct {
		RetryAfter int `json:"retry_after_sec"`
	}
	if o.Code == intents.RateLimited && json.Unmarshal(o.Result, &said) == nil && said.RetryAfter > 0 {
		p.RetryAfter, p.Hint = time.Duration(said.RetryAfter)*time.Second, ""
	}
}

// Write answers a request with the problem.
func (p *Problem) Write(w http.ResponseWriter) {
	answer := *p
	if p.RetryAfter > 0 && p.Hint == p.Code.Info().Hint && p.Code == intents.RateLimited {
		answer.Hint = fmt.Sprintf("try again in %d s", p.retryAfter())
	}
	p.WriteAs(w, ContentType, answer)
}

// WriteAs answers a request with the problem in another form.
func (p *Problem) WriteAs(w http.ResponseWriter, contentType string, body any) {
	h := w.Header()
	h.Set("Content-Type", contentType)
	h.Set("Cache-Control", "no-store")
	if p.Code == intents.SessionBusy { // OpenAI's clients send a 409 again by themselves
		h.Set("X-Should-Retry", "false")
	}
	if wait := p.retryAfter(); wait > 0 {
		h.Set("Retry-After", strconv.FormatInt(wait, 10))
	}
	w.WriteHeader(p.Status)
	_ = json.NewEncoder(w).Encode(body) // fails only with the connection
}

// retryAfter is in whole seconds, rounded up. Clients that should try again learn when.
func (p *Problem) retryAfter() int64 {
	if p.RetryAfter == 0 && (p.Status == http.StatusTooManyRequests || p.Code == intents.InFlight) {
		return 1
	}
	return int64(math.Ceil(p.RetryAfter.Seconds()))
}

// OpenAI is a problem in the form of OpenAI's API.
func OpenAI(p Problem) any {
	kind := "invalid_request_error"
	switch {
	case p.Status >= http.StatusInternalServerError:
		kind = "server_error"
	case p.Status == http.StatusTooManyRequests:
		kind = "rate_limit_error"
	}
	message := cmp.Or(p.Detail, p.Title)
	if p.Hint != "" {
		message += "; " + p.Hint
	}
	var param any
	if p.Pointer != "" {
		param = strings.ReplaceAll(p.Pointer[1:], "/", ".")
	}
	return map[string]any{"error": map[string]any{"message": message, "type": kind, "code": p.Code, "param": param}}
}

// WithOpenAI is a problem document that clients of OpenAI's API can read, too.
func WithOpenAI(p Problem) any {
	both, _ := OpenAI(p).(map[string]any)
	raw, _ := json.Marshal(p)      // strings and numbers
	_ = json.Unmarshal(raw, &both) // has no member error
	return both
}
