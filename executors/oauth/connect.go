package oauth

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"

	"golang.org/x/oauth2"

	"aob.dev/writ/executors"
	"aob.dev/writ/executors/mcp"
	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/egress"
	"aob.dev/writ/storage"
)

// Handlers of the intents about connections.
func (c *Connections) Handlers() map[string]executors.Handler {
	return map[string]executors.Handler{"skill.connect": executors.WithArgs(c.connect), catalog.TypeSkillDisconnect: executors.WithArgs(c.disconnect)}
}

// connect shows, begins or ends a connection of the intent's user.
func (c *Connections) connect(ctx context.Context, o *executors.Intent, args catalog.SkillConnect) (*executors.Result, error) {
	var l catalog.ConnectLink
	var answer catalog.ConnectAnswer
	err := c.links.Open(args.Link, &l, catalog.SealedLink)
	if args.Answer != "" {
		err = c.links.Open(args.Answer, &answer, catalog.SealedAnswer)
		l = answer.ConnectLink
	}
	who := o.Ticket.Actor
	switch {
	case err != nil:
		return nil, executors.Fail(intents.MalformedArgs, "the link is none of this writ: run writ skill connect SERVER")
	case l.Tenant != who.Tenant || l.User != who.UserID:
		return nil, executors.Fail(intents.MalformedArgs, "the link is for another user: each connects by a link of their own: writ skill connect "+l.Server)
	case !c.Now().Before(l.Until):
		return nil, executors.Fail(intents.MalformedArgs, "the link has lapsed: run writ skill connect "+l.Server)
	}
	s := c.server(l.Server)
	if s == nil || !s.OAuth.PerUser() || s.Tenants != nil && !slices.Contains(s.Tenants, who.Tenant) {
		return nil, executors.Fail(intents.NotFound, "no skill server "+l.Server+" has users connect: see auth in docs/skills.md")
	}
	x, err := c.load(ctx, who, l.Server)
	if err != nil {
		return nil, executors.Store(err)
	}
	out := catalog.SkillConnectResult{Server: l.Server, Address: s.Endpoint()}
	if args.Answer != "" {
		err = c.end(ctx, o, s, x, answer, &out)
	} else {
		err = c.begin(ctx, o, s, x, l, args, &out)
	}
	return &executors.Result{Value: out}, failure(err)
}

// failure is the outcome of an intent that failed with an error.
func failure(err error) error {
	var e *mcp.Error
	switch {
	case errors.As(err, &e) && e.Retryable():
		return executors.Unavailable(e.Reason, err)
	case errors.As(err, &e):
		return executors.Fail(intents.ExecutorFailed, e.Reason)
	}
	return executors.Store(err)
}

// begin shows the server with its issuer and scopes and, with a redirect URI, begins the connection, which
// uses the link up. The authorization server is looked up anew.
//
// Crash: the link is used, and the person takes another.
func (c *Connections) begin(ctx context.Context, o *executors.Intent, s *server, x *connection, l catalog.ConnectLink, args catalog.SkillConnect, out *catalog.SkillConnectResult) error {
	if slices.ContainsFunc(x.Used, func(u used) bool { return u.Nonce == l.Nonce }) {
		return executors.Fail(intents.MalformedArgs, "the link was used before: run writ skill connect "+l.Server)
	}
	a, err := c.authority(ctx, s, true)
	if err != nil {
		return err
	}
	out.Issuer, out.Scopes, out.Connected = a.Issuer, append([]string{}, a.Scopes...), x.Tokens != nil && x.Tokens.Issuer == a.Issuer
	switch {
	case a.AuthorizationEndpoint == "":
		return executors.Fail(intents.ExecutorFailed, "its authorization server has no page for people to connect at")
	case !slices.Contains(a.CodeChallengeMethodsSupported, "S256"):
		return executors.Fail(intents.ExecutorFailed, "its authorization server does not take PKCE with S256")
	case args.RedirectURI == "":
		return nil
	}
	who, err := s.client(ctx, a, args.RedirectURI)
	if err != nil {
		return executors.Fail(intents.ExecutorFailed, "the authorization server "+a.Issuer+": "+err.Error())
	}
	resource := a.Resource
	if s.OAuth.Mode == mcp.AuthExchange {
		resource = "" // the token is for the issuer itself
	}
	p := &pending{
		place:    place{a.Issuer, a.TokenEndpoint, a.RevocationEndpoint, resource, a.Scopes, who, args.Absent},
		Nonce:    l.Nonce,
		Verifier: oauth2.GenerateVerifier(), Redirect: args.RedirectURI, Named: a.AuthorizationResponseIssParameterSupported, Until: c.Now().Add(catalog.ConnectLife),
	}
	x.Used = slices.DeleteFunc(x.Used, func(u used) bool { return !c.Now().Before(u.Until) })
	x.Used, x.Pending = append(x.Used, used{l.Nonce, l.Until}), p
	if err := c.save(ctx, x, o.Ticket.Position); err != nil {
		return err
	}
	out.AuthorizationURL = p.page(a.AuthorizationEndpoint)
	return nil
}

// end exchanges the code of an answer for tokens. What was begun is removed first, so that no code is used twice.
//
// Crash: the person connects again.
func (c *Connections) end(ctx context.Context, o *executors.Intent, s *server, x *connection, answer catalog.ConnectAnswer, out *catalog.SkillConnectResult) error {
	p := x.Pending
	switch {
	case p == nil || p.Nonce != answer.Nonce || !c.Now().Before(p.Until):
		return executors.Fail(intents.MalformedArgs, "this connection was not begun, or has ended: run writ skill connect "+answer.Server)
	case answer.Issuer != "" && answer.Issuer != p.Issuer, answer.Issuer == "" && p.Named:
		return executors.Fail(intents.MalformedArgs, "the answer is not of the authorization server "+p.Issuer+": run writ skill connect "+answer.Server)
	}
	x.Pending = nil
	if err := c.save(ctx, x, o.Ticket.Position); err != nil {
		return err
	}
	got, err := p.grant(ctx, s.http, map[string]string{"code": answer.Code, "code_verifier": p.Verifier, "redirect_uri": p.Redirect})
	if err != nil {
		return tokenError(err)
	}
	x.Tokens = &tokens{p.place, got.AccessToken, got.RefreshToken, c.held(got).until}
	if err := c.save(ctx, x, o.Ticket.Position); err != nil {
		return err
	}
	out.Issuer, out.Scopes, out.Connected = p.Issuer, append([]string{}, p.Scopes...), true
	c.changed(ctx, x)
	return nil
}

func (c *Connections) changed(ctx context.Context, x *connection) {
	c.Changed(intents.Principal{Tenant: x.Tenant, UserID: x.User}, x.Server, x.Tokens != nil)
	c.Log.InfoContext(ctx, "a connection to a skill server has changed", slog.Bool("connected", x.Tokens != nil), slog.String("server", x.Server), slog.String("tenant", x.Tenant), slog.String("user", x.User), slog.String("issuer", x.Issuer))
}

// disconnect ends the connections of the caller, or of another user, to one server or all. Authorization servers
// take the tokens back first.
//
// Crash: the connection is still there, and the intent, carried out again, has its tokens taken back again.
func (c *Connections) disconnect(ctx context.Context, o *executors.Intent, args catalog.SkillDisconnect) (*executors.Result, error) {
	who := o.Ticket.Actor
	if args.Tenant != "" && who.Tenant != storage.SystemTenant && args.Tenant != who.Tenant {
		return nil, executors.Fail(intents.RBACForbidden, "only operators of system may name another tenant")
	}
	who.Tenant, who.UserID = cmp.Or(args.Tenant, who.Tenant), cmp.Or(args.UserID, who.UserID)
	if args.Server != "" && c.server(args.Server) == nil {
		return nil, executors.Fail(intents.NotFound, "there is no skill server "+args.Server+" with connections")
	}
	names := []string{args.Server}
	if args.Server == "" {
		page, err := c.Documents.Search(ctx, who.Tenant, storage.IndexConnections, storage.Query{Terms: map[string][]string{"user_id": {who.UserID}}, Sort: "server", Limit: maxConnections})
		if err != nil {
			return nil, executors.Store(err)
		}
		names = nil
		for _, doc := range page.Documents {
			names = append(names, strings.TrimPrefix(doc.ID, id(who.UserID, "")))
		}
	}
	removed, revoked, errs := make([]bool, len(names)), make([]bool, len(names)), make([]error, len(names))
	var all sync.WaitGroup
	for i, name := range names {
		all.Go(func() { removed[i], revoked[i], errs[i] = c.remove(ctx, who, name) })
	}
	all.Wait()
	if err := errors.Join(errs...); err != nil {
		return nil, executors.Store(err)
	}
	out := catalog.SkillDisconnectResult{Removed: slices.Contains(removed, true), Revoked: slices.Contains(removed, true) && !slices.Contains(revoked, false)}
	for i, name := range names {
		if args.Server == "" && removed[i] {
			out.Connections = append(out.Connections, catalog.EndedAccess{Server: name, Revoked: revoked[i]})
		}
	}
	return &executors.Result{Value: out}, nil
}

// maxConnections bounds those of a user that are ended at once.
const maxConnections = 1000

// remove ends one connection. The server may be no longer configured.
func (c *Connections) remove(ctx context.Context, who intents.Principal, name string) (removed, revoked bool, err error) {
	x, err := c.load(ctx, who, name)
	if err != nil || x.version == storage.NoPosition {
		return false, false, err
	}
	s := c.server(name)
	if s == nil {
		s = &server{http: egress.Client(egress.Transport(c.Hosts...))}
	}
	revoked = x.Tokens != nil && s.revoke(ctx, x.Tokens)
	if err := c.Documents.Delete(ctx, x.Tenant, storage.IndexConnections, id(x.User, x.Server)); err != nil {
		return false, revoked, err
	}
	x.Tokens = nil
	c.changed(ctx, x)
	return true, revoked, nil
}

// revoke asks the authorization server to take the tokens back (RFC 7009).
func (s *server) revoke(ctx context.Context, t *tokens) bool {
	if u, err := url.Parse(t.Revocation); err != nil || u.Host == "" || !mcp.Private(t.Revocation) {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, tokenTime)
	defer cancel()
	form := url.Values{"token": {cmp.Or(t.Refresh, t.Access)}, "client_id": {t.Client.ID}}
	if t.Client.Style == oauth2.AuthStyleInParams && t.Client.Secret != "" {
		form.Set("client_secret", t.Client.Secret)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, t.Revocation, strings.NewReader(form.Encode()))
	if err != nil {
		return false
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	if t.Client.Style == oauth2.AuthStyleInHeader {
		req.SetBasicAuth(url.QueryEscape(t.Client.ID), url.QueryEscape(t.Client.Secret))
	}
	resp, err := s.http.Do(req)
	if err != nil {
		return false
	}
	return resp.Body.Close() == nil && resp.StatusCode == http.StatusOK
}
