package gateway

import (
	"cmp"
	"context"
	"reflect"
	"strconv"

	"github.com/gin-gonic/gin"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
)

// turnRequest is a request for a turn.
type turnRequest struct {
	message   string
	id        string              // the client's id of the message; empty: none
	about     catalog.TurnContext // for the prompts
	transient catalog.Transient   // likewise
	request   *catalog.Request    // identity of the request; nil: it is not repeated
	absent    bool                // the user is not present
	routing   *catalog.Routing    // that chooses the agent; nil: the agent is known
}

// ask reads the headers of a request. The grant identifies the user: name and e-mail are accepted
// only from callers who may assert users. A session has its own history.
func (g *Gateway) ask(c *gin.Context, who caller, a actor, q turnRequest) turnRequest {
	about, transient := &q.about, &q.transient
	transient.AddedInstruction = cmp.Or(c.GetHeader("X-Added-Instruction"), transient.AddedInstruction)
	about.Locale, about.Location, about.TimeZone = c.GetHeader("X-Locale"), c.GetHeader("X-Location"), c.GetHeader("X-Time-Zone")
	about.SessionName, about.SessionMetadata = c.GetHeader("X-Session-Name"), c.GetHeader("X-Session-Metadata")
	if who.key.MayAssertUser {
		transient.UserName, transient.UserEmail = c.GetHeader("X-User-Name"), c.GetHeader("X-User-Email")
	}
	if g.cfg.Profiles != nil && transient.UserName == "" && !q.absent {
		name, email := g.profile(c.Request.Context(), cmp.Or(transient.UserEmail, a.user))
		transient.UserName, transient.UserEmail = name, cmp.Or(transient.UserEmail, email)
	}
	if a.session != "" {
		about.History = nil
	}
	q.request = requestOf(c, a, q.id)
	return q
}

// turn returns the parts of the request for the prompts; nil: none.
func (q turnRequest) turn() *catalog.TurnContext {
	if reflect.ValueOf(q.about).IsZero() {
		return nil
	}
	return &q.about
}

// bodyDigest is the key under which readBody stores the digest of a body.
const bodyDigest = "body_digest"

// requestOf identifies a request of the user: by its Idempotency-Key, by the id of its message,
// or by its route, session and body. A request without a key, a session and a client that numbers
// its attempts is unique.
func requestOf(c *gin.Context, a actor, id string) *catalog.Request {
	if id != "" {
		id = "message\n" + a.session + "\n" + id
	}
	if key := cmp.Or(c.GetHeader("Idempotency-Key"), id); key != "" {
		return &catalog.Request{Digest: intents.Digest([]byte("key\n" + key)), Kind: catalog.RequestKey}
	}
	sent := c.GetHeader("X-Stainless-Retry-Count")
	if a.session == "" && sent == "" {
		return nil
	}
	r := catalog.Request{Digest: intents.Digest([]byte("body\n" + c.Request.URL.Path + "\n" + a.session + "\n" + c.GetString(bodyDigest))), Kind: catalog.RequestBody}
	if n, err := strconv.Atoi(sent); err == nil && n > 0 {
		r.Kind = catalog.RequestRetry
	}
	return &r
}

// join returns the turn that a request has opened before, to be followed like one that was just
// opened.
func (g *Gateway) join(ctx context.Context, a actor, planID string) (turn, runReply, error) {
	v, err := g.viewPlan(ctx, a, planID)
	a.session = v.SessionID
	t := turn{actor: a, id: v.TurnID, plan: v.PlanID, question: v.Task, epoch: v.Epoch, opened: v.CreatedAt, ended: closed(v)}
	return t, runReply{PlanID: t.plan, SessionID: a.session, TurnID: t.id, TraceID: a.trace}, err
}
