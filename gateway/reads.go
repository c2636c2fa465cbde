package gateway

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"time"

	"github.com/gin-gonic/gin"

	"aob.dev/writ/gateway/readapi"
	"aob.dev/writ/intents"
	"aob.dev/writ/internal/problem"
)

// What a person reads is no intent: a router decides and answers it, and the gateway forwards it
// under a grant for reading (package readapi).

// readTimeout bounds a read that the gateway itself makes.
const readTimeout = 30 * time.Second

// read reads for a user, and decodes the answer. Parameters may be nil.
func read[Result any](ctx context.Context, g *Gateway, a actor, path string, q url.Values) (Result, error) {
	return readUnder[Result](ctx, g, a, "", path, q)
}

// readUnder is read under a grant that reads one plan and nothing else.
func readUnder[Result any](ctx context.Context, g *Gateway, a actor, plan, path string, q url.Values) (out Result, err error) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, (&url.URL{Path: path, RawQuery: q.Encode()}).String(), nil)
	if err != nil {
		return out, err
	}
	var got localAnswer
	if err := g.forward(&got, r, a, plan); err != nil {
		return out, err
	}
	if err := ctx.Err(); err != nil {
		return out, unanswered(err, "the router")
	}
	if got.status >= http.StatusBadRequest {
		var p problem.Problem
		if json.Unmarshal(got.body.Bytes(), &p) != nil {
			p = *problem.New(intents.Internal, "", "")
		}
		if seconds, err := time.ParseDuration(got.Header().Get("Retry-After") + "s"); err == nil {
			p.RetryAfter = seconds
		}
		return out, &p
	}
	if err := json.Unmarshal(got.body.Bytes(), &out); err != nil {
		return out, fmt.Errorf("answer of %s: %w", path, err)
	}
	return out, nil
}

// traceID is the form of the ids that a trace context can carry.
var traceID = regexp.MustCompile(`^[0-9a-f]{32}$`)

// forward has a router answer a read of an actor, under a grant for reading; with a plan, it reads
// that plan and nothing else. If the read shows what belongs to others, an audit.read is on record
// before w gets the answer.
func (g *Gateway) forward(w http.ResponseWriter, r *http.Request, a actor, plan string) error {
	if g.router == nil {
		return problem.New(intents.DispatchUnavailable, "", "no router is known here that answers reads")
	}
	token, err := g.issueReading(a, plan)
	if err != nil {
		return err
	}
	known := g.audits.of(a, r.URL.Path).id
	try := func(audit string) string { //nolint:contextcheck // the request has it
		out := r.Clone(r.Context())
		out.Header.Del("X-Api-Key")
		out.Header.Set("Authorization", "Bearer "+token)
		out.Header.Del(readapi.HeaderAudit)
		if audit != "" {
			out.Header.Set(readapi.HeaderAudit, audit)
		}
		out.Header.Set(readapi.HeaderAfter, strconv.FormatInt(g.last.Load(), 10))
		if traceID.MatchString(a.trace) {
			out.Header.Set("Traceparent", "00-"+a.trace+"-"+a.trace[:16]+"-01")
		}
		held := &unaudited{ResponseWriter: w, header: http.Header{}}
		g.router.ServeHTTP(held, out)
		return held.subject
	}
	subject := try(known)
	if subject == "" {
		return nil
	}
	audit, err := g.auditRead(r.Context(), a, subject, known)
	if err != nil {
		return err
	}
	g.audits.put(a, r.URL.Path, audit)
	if try(audit.id) != "" {
		return problem.New(intents.AuditRequired, "", "")
	}
	return nil
}

// unaudited is an answer that is held back if it refuses a read for want of an audit.read.
type unaudited struct {
	http.ResponseWriter
	header  http.Header
	begun   bool
	subject string // of that audit.read; empty: the answer is passed on
}

// Header implements http.ResponseWriter.
func (u *unaudited) Header() http.Header {
	if u.begun {
		return u.ResponseWriter.Header()
	}
	return u.header
}

// WriteHeader implements http.ResponseWriter.
func (u *unaudited) WriteHeader(status int) {
	if u.begun || u.subject != "" {
		return
	}
	if s := u.header.Get(readapi.HeaderSubject); s != "" && status == intents.AuditRequired.Info().Status {
		u.subject = s
		return
	}
	u.begun = true
	h := u.ResponseWriter.Header()
	for name, values := range u.header {
		h[name] = values
	}
	u.ResponseWriter.WriteHeader(status)
}

// Write implements http.ResponseWriter.
func (u *unaudited) Write(b []byte) (int, error) {
	u.WriteHeader(http.StatusOK)
	if u.subject != "" {
		return len(b), nil
	}
	return u.ResponseWriter.Write(b)
}

// Unwrap is for http.ResponseController.
func (u *unaudited) Unwrap() http.ResponseWriter { return u.ResponseWriter }

// localAnswer is the answer of a handler in this process to the gateway.
type localAnswer struct {
	header http.Header
	status int
	body   bytes.Buffer
}

// Header implements http.ResponseWriter.
func (a *localAnswer) Header() http.Header {
	if a.header == nil {
		a.header = http.Header{}
	}
	return a.header
}

// WriteHeader implements http.ResponseWriter.
func (a *localAnswer) WriteHeader(status int) { a.status = status }

func (a *localAnswer) Write(b []byte) (int, error) { return a.body.Write(b) }

// routed is a route that a router answers, with these parameters of the request.
func (g *Gateway) routed(path string, parameters ...string) func(*gin.Context, caller) error {
	return g.identified(func(c *gin.Context, a actor) error {
		out, err := read[json.RawMessage](c.Request.Context(), g, a, path, chosen(c, parameters...))
		return respond(c, out, err)
	})
}

// chosen are parameters of a request.
func chosen(c *gin.Context, names ...string) url.Values {
	q := url.Values{}
	for _, name := range names {
		if v, given := c.GetQuery(name); given && v != "" {
			q.Set(name, v)
		}
	}
	return q
}
