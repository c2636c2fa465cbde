package model

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/openai/openai-go/v3/packages/ssestream"

	"aob.dev/writ/internal/visible"
)

// failure is a server's explanation of a failed request.
type failure struct {
	status                     int // 0: there was no response
	kind, code, param, message string
	body                       string
}

// failure reads the server's explanation; err is the library's.
func (s *lastResponse) failure(err error) failure {
	var f failure
	var event *ssestream.StreamError
	resp := s.resp.Load() //nolint:bodyclose // the library closes it
	switch {
	case errors.As(err, &event):
		f = parseFailure(event.Event.Data)
	case resp != nil && resp.StatusCode >= 400:
		body, err := io.ReadAll(io.LimitReader(resp.Body, maxErrorBytes)) // the library left it readable
		if err == nil {
			f = parseFailure(body)
		}
	}
	f.status = s.status()
	return f
}

// parseFailure reads an error's body in any of the shapes that servers use.
func parseFailure(body []byte) failure {
	var doc any
	if json.Unmarshal(body, &doc) != nil {
		return failure{message: string(body), body: string(body)}
	}
	if list, ok := doc.([]any); ok && len(list) > 0 {
		doc = list[0]
	}
	members, _ := doc.(map[string]any)
	if inner, ok := members["error"].(map[string]any); ok {
		members = inner
	}
	word := func(name string) string {
		s, _ := members[name].(string)
		return s
	}
	message := cmp.Or(word("message"), word("detail"), word("error"))
	if message == "" {
		b, _ := json.Marshal(doc) // it was read as JSON; a key in it is no longer escaped
		message = string(b)
	}
	return failure{kind: word("type"), code: word("code"), param: word("param"), message: message, body: string(body)}
}

// openaiError turns a failed attempt into our error. It drops the library's error, which contains
// the request with its key.
func openaiError(ctx context.Context, f failure, err error, key string) *Error {
	switch {
	case ctx.Err() != nil:
		if errors.Is(context.Cause(ctx), context.Canceled) {
			return &Error{Reason: "the model was not waited for", Retryable: true, Err: context.Canceled}
		}
		return &Error{Reason: "the model did not answer in time", Retryable: true, Err: context.DeadlineExceeded}
	case f.status == 0:
		return &Error{Reason: "the model cannot be reached", Retryable: true, Err: rootCause(err)}
	}
	e := &Error{Detail: f.detail(key), Status: f.status}
	switch {
	case f.overflows():
		e.Reason, e.Overflow = "the request is longer than the model can take", true
	case f.status < 300:
		e.Reason, e.Retryable = "the model's answer broke off or is malformed", true
	case f.status < 400:
		e.Reason = "the model's server redirects elsewhere, which is not followed"
	case f.outOfQuota():
		e.Reason, e.Unserved = "the account at the model's server is used up", true
	case f.notFound():
		e.Reason, e.Unserved = "the model's server has no such model", true
	case f.status == http.StatusUnauthorized || f.status == http.StatusForbidden:
		e.Reason, e.Unserved = "the model's server denied access", true
	case f.status == http.StatusTooManyRequests:
		e.Reason, e.Retryable = "the model's server has too much to do", true
	case f.transient():
		e.Reason, e.Retryable = "the model's server failed", true
	default:
		e.Reason = "the model's server refused the request"
	}
	return e
}

func (f failure) notFound() bool {
	return f.status == http.StatusNotFound || f.status == http.StatusGone || f.code == "model_not_found" || f.code == "model_decommissioned"
}

func (f failure) outOfQuota() bool {
	return f.status == http.StatusPaymentRequired || f.status >= 400 && (f.code == "insufficient_quota" || f.kind == "insufficient_quota")
}

// retryText is how servers name the time to wait where they send no header.
var retryText = regexp.MustCompile(`(?i)(?:try again|retry) (?:in|after) ([0-9][0-9hms.]*[hms])\b|"retryDelay":\s*"([0-9.]+s)"`)

// retryAfter is the time to wait that the error's body names; 0: none.
func (f failure) retryAfter() time.Duration {
	if m := retryText.FindStringSubmatch(f.body); m != nil && f.transient() {
		d, _ := time.ParseDuration(cmp.Or(m[1], m[2]))
		return max(d, 0)
	}
	return 0
}

// invalid reports whether the server rejected the request itself.
func (f failure) invalid() bool {
	return slices.Contains([]int{http.StatusBadRequest, http.StatusRequestEntityTooLarge, http.StatusUnprocessableEntity}, f.status)
}

// overflowWords are the words with which servers report that a request is longer than the model's
// context.
var overflowWords = []string{
	"context length", "context_length", "context window", "context size", "context_size", "maximum context",
	"too many tokens", "prompt is too long", "input is too long", "input token count",
}

// overflows reports whether the request is longer than the model's context. The error may also
// come within a stream.
func (f failure) overflows() bool {
	if f.status != http.StatusOK && !f.invalid() {
		return false
	}
	said := strings.ToLower(f.code + " " + f.kind + " " + f.message)
	return slices.ContainsFunc(overflowWords, func(w string) bool { return strings.Contains(said, w) })
}

// Limits of the retained text of a server.
const (
	maxErrorBytes = 64 << 10
	maxDetail     = 1 << 10
)

// detail returns the server's text, on one line and without the key.
func (f failure) detail(key string) string {
	said := strings.TrimRight(fmt.Sprintf("HTTP %d%s: %s", f.status, f.codes(), strings.TrimSpace(f.message)), ": ")
	if key != "" {
		said = strings.ReplaceAll(said, key, "[key]")
	}
	said = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(said, ""))
	return visible.Cut(said, maxDetail)
}

// transient reports whether the same request may succeed later.
func (f failure) transient() bool {
	return f.status >= 500 || slices.Contains([]int{http.StatusRequestTimeout, http.StatusConflict, http.StatusTooEarly, http.StatusTooManyRequests}, f.status)
}

// codes returns the codes of an error, which are words of the protocol.
func (f failure) codes() string {
	var words []string
	for _, w := range []string{f.kind, f.code, f.param} {
		if protocolWord.MatchString(w) {
			words = append(words, w)
		}
	}
	if len(words) == 0 {
		return ""
	}
	return " (" + strings.Join(words, ", ") + ")"
}

var protocolWord = regexp.MustCompile(`^[A-Za-z0-9_.\[\]-]{1,64}$`)

// rootCause returns the network error below the HTTP client's, without the URL.
func rootCause(err error) error {
	for next := err; next != nil; next = errors.Unwrap(next) {
		err = next
	}
	return err
}
