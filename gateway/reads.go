package gateway

import (
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
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/problem"
	"aob.dev/writ/internal/problem/edge"
	"aob.dev/writ/internal/ratelimit"
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
	got := edge.Keep()
	if err := g.forward(got, r, a, plan); err != nil {
		return out, err
	}
	if err := ctx.Err(); err != nil {
		return out, unanswered(err, "the router")
	}
	if got.Status >= http.StatusBadRequest {
		var p problem.Problem
		if json.Unmarshal(got.Body.Bytes(), &p) != nil {
			p = *problem.New(intents.Internal, "", "")
		}
		if seconds, err := time.ParseDuration(got.Header().Get("Retry-After") + "s"); err == nil {
			p.RetryAfter = seconds
		}
		return out, &p
	}
	if err := json.Unmarshal(got.Body.Bytes(), &out); err != nil {
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
	path := nameOf(a.tenant, a.user, r.URL.Path)
	known, _ := g.audits.Get(path)
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
		tap := edge.Pass(w, unaudited)
		g.router.ServeHTTP(tap, out)
		if tap.Status == 0 {
			return ""
		}
		return tap.Header().Get(readapi.HeaderSubject)
	}
	subject := try(known)
	if subject == "" {
		return nil
	}
	audit, err := g.auditRead(r.Context(), a, subject, known)
	if err != nil {
		return err
	}
	g.audits.Put(path, a.tenant, a.user, 1, audit)
	if try(audit) != "" {
		return problem.New(intents.AuditRequired, "", "")
	}
	return nil
}

// unaudited reports whether an answer refuses a read for want of an audit.read.
func unaudited(status int, h http.Header) bool {
	return status == intents.AuditRequired.Info().Status && h.Get(readapi.HeaderSubject) != ""
}

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

// auditShares bound the remembered audit.reads: of all, of a tenant's, and of a reader's.
var auditShares = ratelimit.Shares{All: 20_000, Tenant: 10_000, Key: 2000}

// auditLife is how long an audit.read is good for at a router. Another gateway, or this one after a
// restart, signs one more.
const auditLife = time.Hour

// auditRead returns an audit.read of the last hour, other than one that a router has not accepted. It
// signs one where there is none, for all concurrent reads of the subject by the reader.
//
// A crash after the commit leaves a record of a read that was not answered.
func (g *Gateway) auditRead(ctx context.Context, a actor, subject, refused string) (id string, err error) {
	name := nameOf(a.tenant, a.user, subject)
	got, err, _ := g.signing.Do(name, func() (any, error) {
		if known, ok := g.audits.Get(name); ok && known != refused {
			return known, nil
		}
		signing, cancel := lasting(ctx, intentTTL+catalog.DefaultRun)
		defer cancel()
		id, err := g.signAuditRead(signing, a, subject)
		if err == nil {
			g.audits.Put(name, a.tenant, a.user, 1, id)
		}
		return id, err
	})
	id, _ = got.(string)
	return id, err
}

func (g *Gateway) signAuditRead(ctx context.Context, a actor, subject string) (id string, err error) {
	answer, err := g.submitAt(ctx, a, catalog.TypeAuditRead, catalog.AuditRead{Subject: subject}, intents.Context{TurnID: newID("turn")})
	if err != nil {
		return "", err
	}
	if answer.Outcome == nil {
		return "", unawaited(answer)
	}
	return answer.IntentID, nil
}
