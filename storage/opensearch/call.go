package opensearch

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"time"

	"aob.dev/writ/internal/clock"
	"aob.dev/writ/internal/egress"
	"aob.dev/writ/storage"
)

// request is one call of the server's API.
type request struct {
	method string
	path   string // escaped
	query  url.Values
	body   any // marshalled, unless it is bytes already; nil: none
	// repeat reports that a second request does no harm and gives the same, so that a
	// failed one is sent again. A write is sent again only if it surely had no
	// effect.
	repeat bool
}

// attempts and pause between them; a caller with more patience asks again.
const (
	attempts = 3
	pause    = 100 * time.Millisecond
)

// answerLimit bounds an answer in bytes: 1,000 documents of the largest size.
const answerLimit = 1 << 30

// failure is an answer with an error.
type failure struct {
	status int
	kind   string // the server's name of the error
}

func (f *failure) Error() string {
	return fmt.Sprintf("opensearch answered %d %s", f.status, f.kind)
}

// Unwrap is the failure in words.
func (f *failure) Unwrap() error {
	r := egress.Status(f.status)
	switch f.kind {
	case "cluster_block_exception":
		r.Message, r.Mend = "it takes no writes for now: a disk of it is full, or somebody has closed an index", egress.Look
	case indexNotFound:
		r.Message, r.Mend = "an index is not there, or not yet", egress.Look
	}
	if f.kind != http.StatusText(f.status) {
		r.Err = errors.New(f.kind)
	}
	return r
}

// Is reports that a failure that may pass is storage.ErrUnavailable.
func (f *failure) Is(target error) bool {
	if target != storage.ErrUnavailable {
		return false
	}
	switch f.kind {
	case "cluster_block_exception":
		return true // writes are stopped for a while, or until there is room on a disk
	case indexNotFound:
		return true // Reindex has put another in force, or Migrate makes it
	}
	switch f.status {
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return true
	default:
		return false
	}
}

// indexNotFound is the server's name for a missing index. A request to an
// alias gets it too, if the server resolved the alias just
// before Reindex removed it. Nothing was carried out, and the same request finds the
// index that is now in force.
const indexNotFound = "index_not_found_exception"

// isIndexNotFound reports whether a request met a missing index.
func isIndexNotFound(err error) bool {
	var f *failure
	return errors.As(err, &f) && f.kind == indexNotFound
}

// statusOf is the status of a failure, 0 for other errors.
func statusOf(err error) int {
	var f *failure
	if errors.As(err, &f) {
		return f.status
	}
	return 0
}

// call sends a request and decodes the answer into out. The context's error stays
// itself; all that may pass is storage.ErrUnavailable.
func (d *Documents) call(ctx context.Context, r request, out any) error {
	body, isRaw := r.body.([]byte)
	if r.body != nil && !isRaw {
		var err error
		if body, err = json.Marshal(r.body); err != nil {
			return err
		}
	}
	err := d.patiently(ctx, r, body, out)
	if err == nil || ctx.Err() != nil {
		return ctx.Err()
	}
	return d.server().Fault(err)
}

// server names the server in errors.
func (d *Documents) server() egress.Server {
	u, _ := url.Parse(d.cfg.URL) // Open has checked it
	return egress.Server{
		Name: "OpenSearch at " + u.Redacted(), Unaffected: "no record is lost, and what is missing there is added once it answers",
		Address: "documents (--documents)", Secret: "documents_auth, or user:password@ in documents", CA: "documents_ca (--documents-ca)", Try: "writ doctor",
	}
}

func (d *Documents) patiently(ctx context.Context, r request, body []byte, out any) error {
	within, cancel := context.WithTimeout(ctx, d.cfg.Timeout)
	defer cancel()
	for n := 1; ; n++ {
		err := d.once(within, r, body, out)
		if err == nil || within.Err() != nil || n == attempts || !errors.Is(err, storage.ErrUnavailable) {
			return err
		}
		if !r.repeat && !untouched(err) {
			return err
		}
		if waitBefore(within, n) != nil {
			return err
		}
	}
}

// waitBefore waits before the next attempt, n being made; it fails when ctx ends.
func waitBefore(ctx context.Context, n int) error {
	return clock.Sleep(ctx, pause<<(2*(n-1)))
}

// untouched reports that the request surely had no effect: it was not sent, or the
// server rejected it before it began.
func untouched(err error) bool {
	var op *net.OpError
	return statusOf(err) == http.StatusTooManyRequests || errors.As(err, &op) && op.Op == "dial"
}

func (d *Documents) once(ctx context.Context, r request, body []byte, out any) error {
	target := r.path
	if len(r.query) > 0 {
		target += "?" + r.query.Encode()
	}
	req, err := http.NewRequestWithContext(ctx, r.method, target, bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("opensearch: %w", err)
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	raw, status, err := d.send(req)
	switch {
	case err != nil:
		return &noAnswerError{egress.Plain(err)}
	case status >= http.StatusMultipleChoices: // no redirect is followed
		return failed(status, raw)
	case out == nil:
		return nil
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	if err := dec.Decode(out); err != nil {
		return fmt.Errorf("opensearch: malformed answer: %w", err)
	}
	return nil
}

func (d *Documents) send(req *http.Request) ([]byte, int, error) {
	resp, err := d.client.Stream(req)
	if err != nil {
		return nil, 0, err
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(io.LimitReader(resp.Body, answerLimit))
	return raw, resp.StatusCode, err
}

// noAnswerError reports that no answer came.
type noAnswerError struct{ cause error }

func (l *noAnswerError) Error() string { return l.cause.Error() }

// Is makes it storage.ErrUnavailable. It is not the caller's deadline, though it
// may be that of a request.
func (l *noAnswerError) Is(target error) bool { return target == storage.ErrUnavailable }

// As finds what failed below.
func (l *noAnswerError) As(target any) bool { return errors.As(l.cause, target) }

// failed retains only the name of an error: its text may quote a document.
func failed(status int, raw []byte) error {
	var answer struct {
		Error json.RawMessage `json:"error"`
	}
	var named struct {
		Type string `json:"type"`
	}
	if json.Unmarshal(raw, &answer) == nil && json.Unmarshal(answer.Error, &named) == nil {
		return &failure{status: status, kind: named.Type}
	}
	return &failure{status: status, kind: http.StatusText(status)}
}
