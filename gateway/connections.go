package gateway

import (
	"context"
	"crypto/rand"
	"net/url"
	"time"

	"github.com/gin-gonic/gin"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/problem"
	"aob.dev/writ/internal/sealed"
)

// connectionRequest is the body of POST /agent/connections: a server, to get a link; a link, to see what it
// connects to or, with begin, to begin; or the answer of the authorization server.
type connectionRequest struct {
	Server string `json:"server"`
	Link   string `json:"link"`
	Begin  bool   `json:"begin"`
	Absent bool   `json:"absent"`
	State  string `json:"state"`
	Code   string `json:"code"`
	Issuer string `json:"iss"`
}

// connectionReply is the answer.
type connectionReply struct {
	catalog.SkillConnectResult
	URL   string    `json:"url,omitempty"` // of the page, for a server
	Until time.Time `json:"until,omitzero"`
}

// connect is POST /agent/connections. A person calls it through the console: what the browser carries is sealed, and
// names the user for whom alone it is good.
func (g *Gateway) connect(c *gin.Context, who caller) error {
	var body connectionRequest
	if err := readBody(c, &body); err != nil {
		return err
	}
	a, err := g.identify(c.Request.Context(), who, claim{})
	if err != nil {
		return err
	}
	box, err := sealed.NewBox(g.cfg.Links.Key, catalog.LinkUse)
	if err != nil {
		return err
	}
	ctx := c.Request.Context()
	var out connectionReply
	switch {
	case body.State != "":
		out, err = g.connected(ctx, a, box, body)
	case body.Link != "":
		out, err = g.opened(ctx, a, box, g.baseURL(c.Request), body)
	default:
		l := catalog.ConnectLink{Tenant: a.tenant, User: a.user, Server: body.Server, Nonce: rand.Text(), Until: g.cfg.Now().Add(catalog.ConnectLife)}
		if body.Link, err = box.Seal(l, catalog.SealedLink); err != nil {
			return err
		}
		body.Begin = false
		out, err = g.opened(ctx, a, box, "", body)
		out.URL, out.Until = g.baseURL(c.Request)+catalog.ConnectPage+body.Link, l.Until.UTC().Truncate(time.Second)
	}
	return respond(c, out, err)
}

// opened shows what a link connects to, or begins to connect.
func (g *Gateway) opened(ctx context.Context, a actor, box sealed.Box, base string, body connectionRequest) (out connectionReply, err error) {
	args := catalog.SkillConnect{Link: body.Link}
	if body.Begin {
		args.RedirectURI, args.Absent = base+catalog.ConnectReturn, body.Absent
	}
	if out.SkillConnectResult, err = request[catalog.SkillConnectResult](ctx, g, a, "skill.connect", args, ""); err != nil || out.AuthorizationURL == "" {
		return out, err
	}
	var l catalog.ConnectLink
	if err = box.Open(body.Link, &l, catalog.SealedLink); err != nil {
		return out, err // not after the executor has opened it
	}
	l.Until = g.cfg.Now().Add(catalog.ConnectLife)
	state, err := box.Seal(l, catalog.SealedState)
	if err != nil {
		return out, err
	}
	u, err := url.Parse(out.AuthorizationURL)
	if err != nil {
		return out, err
	}
	q := u.Query()
	q.Set("state", state)
	u.RawQuery = q.Encode()
	out.AuthorizationURL = u.String()
	return out, nil
}

// connected ends what was begun, for the user who began it. The code is sealed on its way, since the intent is
// on record.
func (g *Gateway) connected(ctx context.Context, a actor, box sealed.Box, body connectionRequest) (out connectionReply, err error) {
	answer := catalog.ConnectAnswer{Code: body.Code, Issuer: body.Issuer}
	if box.Open(body.State, &answer.ConnectLink, catalog.SealedState) != nil || answer.Tenant != a.tenant || answer.User != a.user {
		return out, problem.New(intents.MalformedArgs, "/state", "this answer belongs to another user, or to nothing that was begun here: connect by a link of your own")
	}
	if body.Code == "" {
		return out, problem.New(intents.MalformedArgs, "/code", "the authorization server has not agreed: connect again, and agree there")
	}
	args := catalog.SkillConnect{}
	if args.Answer, err = box.Seal(answer, catalog.SealedAnswer); err != nil {
		return out, err
	}
	out.SkillConnectResult, err = request[catalog.SkillConnectResult](ctx, g, a, "skill.connect", args, "")
	return out, err
}

func disconnected(c *gin.Context) any {
	return catalog.SkillDisconnect{Server: c.Param("server"), UserID: c.Query("user_id")}
}
