package gateway

import (
	"cmp"
	"context"
	"log/slog"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/gin-gonic/gin"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/problem"
	"aob.dev/writ/state/agents"
)

// DefaultRouting are the default switches of request routing.
var DefaultRouting = catalog.Routing{Bypass: true, Clarify: true, TTLMinutes: 30}

// routingRequest is the body of POST /v1/request. The employee is the user.
type routingRequest struct {
	claim
	Input      string `json:"input"`
	Employee   string `json:"employee_id"`
	EntryPoint string `json:"entry_point"` // origin of the request; empty: ui
	Stream     bool   `json:"stream"`
}

// request is POST /v1/request: request routing chooses the agent.
func (g *Gateway) request(c *gin.Context, who caller) error {
	var body routingRequest
	if err := readBody(c, &body); err != nil {
		return err
	}
	if err := checkMessage(body.Input, "/input"); err != nil {
		return err
	}
	routing := g.cfg.Routing
	if routing.EntryPoint = cmp.Or(body.EntryPoint, "ui"); !identifier.MatchString(routing.EntryPoint) {
		return problem.New(intents.SchemaInvalid, "/entry_point", "must match "+identifier.String())
	}
	var err error
	if body.User, err = agreed("user_id", "employee_id", body.Employee, body.User); err != nil {
		return err
	}
	t, reply, err := g.begin(c, who, body.claim, namedAgent{agent: agents.Planner}, turnRequest{message: body.Input, routing: &routing})
	if err != nil {
		return err
	}
	t.routed = true
	return g.answer(c, t, &reply, body.Stream)
}

// chat is POST /chat/{session_id}: a conversation, of which the last message of the user counts.
// The answer is the stream of POST /agent/run. The header X-Agent-Schema-Name names the agent;
// the default is run_agent, or general.
func (g *Gateway) chat(c *gin.Context, who caller) error {
	var body struct {
		Messages []chatMessage `json:"messages"`
	}
	if err := readBody(c, &body); err != nil {
		return err
	}
	q, err := conversation(body.Messages, "/messages", "")
	if err != nil {
		return err
	}
	q.about, q.transient = catalog.TurnContext{Images: q.about.Images}, catalog.Transient{} // the session has the other messages
	t, reply, err := g.begin(c, who, claim{Session: c.Param("session_id")}, namedAgent{agent: cmp.Or(c.GetHeader("X-Agent-Schema-Name"), g.cfg.RunAgent, agents.General)}, q)
	if err != nil {
		return err
	}
	return g.answer(c, t, &reply, true)
}

// turnRequest is a request for a turn.
type turnRequest struct {
	message   string
	id        string              // the client's id of the message; empty: none
	about     catalog.TurnContext // for the prompts
	transient catalog.Transient   // likewise
	images    []string            // of the message, as data: URLs
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
	if types := c.GetHeader("X-Action-Types"); types != "" {
		about.ActionTypes = strings.FieldsFunc(types, func(r rune) bool { return r == ',' || r == ' ' })
	}
	if who.key.MayAssertUser {
		transient.UserName, transient.UserEmail = c.GetHeader("X-User-Name"), c.GetHeader("X-User-Email")
	}
	if g.cfg.Profiles != nil && transient.UserName == "" && !q.absent {
		name, email := g.profile(c.Request.Context(), cmp.Or(transient.UserEmail, a.user))
		transient.UserName, transient.UserEmail = name, cmp.Or(transient.UserEmail, email)
	}
	if a.session != "" {
		about.History, about.LeftOut = nil, 0
	}
	q.request = requestOf(c, a, q.id)
	return q
}

// turn returns the parts of the request for the prompts; nil: none.
func (q *turnRequest) turn() *catalog.TurnContext {
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
	if err == nil {
		err = g.passSkillKey(ctx, a)
	}
	t := turn{actor: a, id: v.TurnID, plan: v.PlanID, epoch: v.Epoch, opened: v.CreatedAt, ended: v.Status.Ended()}
	return t, runReply{PlanID: t.plan, SessionID: a.session, TurnID: t.id, TraceID: a.trace}, err
}

// Profiles returns a user's name and e-mail address, by that address or the id of the user;
// empty: unknown. It is called before a turn begins.
type Profiles interface {
	Profile(ctx context.Context, addressOrID string) (name, email string, err error)
}

// profileTime bounds the wait for a profile; after it the turn continues without.
const profileTime = 3 * time.Second

// The parts of a profile used by a turn, in bytes.
const (
	maxUserName  = 256
	maxUserEmail = 320
)

// profile returns the profile of a user. No turn fails for the lack of one.
func (g *Gateway) profile(ctx context.Context, user string) (name, email string) {
	ctx, cancel := context.WithTimeout(ctx, profileTime)
	defer cancel()
	name, email, err := g.cfg.Profiles.Profile(ctx, user)
	if err != nil {
		g.cfg.Log.WarnContext(ctx, "a user's profile is not known", slog.String("error", err.Error()))
		return "", ""
	}
	if len(name) > maxUserName || len(email) > maxUserEmail {
		return "", ""
	}
	return name, email
}
