package gateway

import (
	"context"
	"reflect"
	"strconv"

	"github.com/gin-gonic/gin"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
)

// turnRequest is a request for a turn.
type turnRequest struct {
	message string
	request *catalog.Request     // which of the user's it is; nil: one that is not sent again
	about   *catalog.TurnContext // for the prompts; nil: it says nothing
}

// ask reads what a request says beside its message. Who asks is the grant's to say: name
// and e-mail are taken from those who may assert users.
func (who caller) ask(c *gin.Context, a actor, message string) turnRequest {
	about := catalog.TurnContext{
		AddedInstruction: c.GetHeader("X-Added-Instruction"), Locale: c.GetHeader("X-Locale"), Location: c.GetHeader("X-Location"),
		TimeZone: c.GetHeader("X-Time-Zone"), SessionName: c.GetHeader("X-Session-Name"), SessionMetadata: c.GetHeader("X-Session-Metadata"),
	}
	if who.key.MayAssertUser {
		about.UserName, about.UserEmail = c.GetHeader("X-User-Name"), c.GetHeader("X-User-Email")
	}
	q := turnRequest{message: message, request: requestOf(c, a)}
	if !reflect.ValueOf(about).IsZero() {
		q.about = &about
	}
	return q
}

// bodyDigest is where readBody leaves the digest of a body.
const bodyDigest = "body_digest"

// requestOf says which request of the user this is: by its Idempotency-Key, or by its route,
// session and body. A request without any of a key, a session and a client that counts how often
// it sends it is one of its own.
func requestOf(c *gin.Context, a actor) *catalog.Request {
	if key := c.GetHeader("Idempotency-Key"); key != "" {
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

// join gives the turn that a request has opened before, to be followed like one that was
// just opened.
func (g *Gateway) join(ctx context.Context, a actor, planID string) (turn, runReply, error) {
	v, err := g.viewPlan(ctx, a, planID)
	a.session = v.SessionID
	t := turn{actor: a, id: v.TurnID, plan: v.PlanID, question: v.Task, epoch: v.Epoch, opened: v.CreatedAt, settled: closed(v)}
	return t, runReply{PlanID: t.plan, SessionID: a.session, TurnID: t.id, TraceID: a.trace}, err
}
