package gateway

import (
	"context"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/problem"
	"aob.dev/writ/internal/ratelimit"
)

// audits are the audit.reads of the last hour that this process has signed. Another gateway, or this
// one after a restart, signs one more.
type audits struct {
	now     func() time.Time
	signing singleflight.Group

	mu  sync.Mutex
	all *ratelimit.Table[audit] // by reader and subject, and by reader and path
}

type audit struct {
	id string // intent_id
	at time.Time
}

// auditShares bound the remembered ones: of all, of a tenant's, and of a reader's.
var auditShares = ratelimit.Shares{All: 20_000, Tenant: 10_000, Key: 2000}

// auditLife is how long an audit.read is good for at a router.
const auditLife = time.Hour

func newAudits(now func() time.Time) *audits {
	return &audits{now: now, all: ratelimit.NewTable[audit](auditShares, nil)}
}

// of returns the audit.read of a reader for a subject or a path; zero: there is none.
func (s *audits) of(a actor, what string) (x audit) {
	s.mu.Lock()
	defer s.mu.Unlock()
	x, ok := s.all.Get(nameOf(a.tenant, a.user, what))
	if !ok || s.now().Sub(x.at) >= auditLife {
		return audit{}
	}
	return x
}

func (s *audits) put(a actor, what string, x audit) {
	s.mu.Lock()
	defer s.mu.Unlock()
	name := nameOf(a.tenant, a.user, what)
	s.all.Remove(name)
	s.all.Put(name, a.tenant, a.user, 1, x)
}

// auditRead returns an audit.read of the last hour, other than one that a router has not accepted. It
// signs one where there is none, for all concurrent reads of the subject by the reader.
//
// A crash after the commit leaves a record of a read that was not answered.
func (g *Gateway) auditRead(ctx context.Context, a actor, subject, refused string) (audit, error) {
	got, err, _ := g.audits.signing.Do(nameOf(a.tenant, a.user, subject), func() (any, error) {
		if x := g.audits.of(a, subject); x.id != "" && x.id != refused {
			return x, nil
		}
		x := audit{at: g.audits.now()}
		signing, cancel := lasting(ctx, intentTTL+catalog.DefaultRun)
		defer cancel()
		var err error
		if x.id, err = g.signAuditRead(signing, a, subject); err == nil {
			g.audits.put(a, subject, x)
		}
		return x, err
	})
	x, _ := got.(audit)
	return x, err
}

func (g *Gateway) signAuditRead(ctx context.Context, a actor, subject string) (id string, err error) {
	at := intents.Context{TurnID: newID("turn")}
	grant, _, err := g.issueGrant(a, at.TurnID, "")
	if err != nil {
		return "", err
	}
	answer, err := g.submit(ctx, a, intent{catalog.TypeAuditRead, catalog.AuditRead{Subject: subject}, at, grant, ""})
	if err != nil {
		return "", err
	}
	if answer.Outcome == nil {
		p := problem.New(intents.ApprovalRequired, "", answer.Reason)
		p.IntentID, p.TraceID = answer.IntentID, answer.TraceID
		return "", p
	}
	return answer.IntentID, nil
}
