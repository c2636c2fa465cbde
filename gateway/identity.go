package gateway

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/gin-gonic/gin"

	"aob.dev/writ/bus"
	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/openid"
	"aob.dev/writ/internal/problem"
	"aob.dev/writ/internal/problem/edge"
	"aob.dev/writ/internal/ratelimit"
)

// caller is the sender of a request, as far as its API key identifies it.
type caller struct {
	key    bus.APIKeyReply
	header claim
	trace  string
	rate   rates
	lists  bool   // the agents, which front ends do for nobody
	wrong  error  // of the headers
	skill  secret // the caller's own key for skill servers
	named  string // the headers of which one must name the user, unless the body does; empty: none must
	// metered reports that the request has been counted against the user's rate. A request that
	// is refused before its user is known counts against the key.
	metered *bool
}

// refused names the count of requests that are refused before their user is known.
func (c *caller) refused() ratelimit.Caller {
	return ratelimit.Caller{Tenant: c.key.Tenant, Key: c.key.ID}
}

// mayGoOn refuses a key that has sent too many unreadable requests, before anything is read.
func (g *Gateway) mayGoOn(who caller) error {
	if wait, spent := g.doors.Exhausted(who.refused()); spent {
		return limited(wait)
	}
	return nil
}

// claim is the user that a request names. All members are optional.
type claim struct {
	Tenant  string `json:"tenant_id"`
	User    string `json:"user_id"`
	Session string `json:"session_id"`
}

// actor is the user for whom a request acts, checked against the key and the
// directory.
type actor struct {
	tenant, user, session string
	keyID                 string // of the API key, or intents.CallerByToken
	roles                 []string
	stops                 []catalog.StopOf // that stand in the tenant
	position              int64            // of the newest record
	trace                 string
	skillKey              secret // for skill servers that get the caller's own
}

// turnRef names a turn of the actor to the agentic layer.
func (a actor) turnRef(turn, plan, grant string) bus.TurnRef {
	return bus.TurnRef{Tenant: a.tenant, UserID: a.user, SessionID: a.session, TurnID: turn, PlanID: plan, TraceID: a.trace, Grant: grant}
}

// keyLife is how long a known API key is cached, and so how long a revoked key may still open
// turns. An unknown key is always looked up.
const keyLife = 5 * time.Second

// authenticate finds the owner of the API key. Failures count against the address that they come
// from.
func (g *Gateway) authenticate(c *gin.Context) (caller, error) {
	who := caller{
		trace: edge.Trace(c), rate: g.limit, metered: new(bool), lists: c.FullPath() == routeModels,
	}
	if c.Request.Method == http.MethodGet {
		who.rate = g.reads
	}
	if token := bearerOf(c); isJWT(token) && c.GetHeader("X-Api-Key") == "" && len(g.cfg.People.Issuers()) > 0 {
		var err error
		who.key, err = g.bearer(c, token)
		who.wrong = who.read(c.Request.Header, g.cfg.UserHeaders)
		if err == nil {
			who.skill, err = g.skillKey(c)
		}
		return who, err
	}
	secret := cmp.Or(c.GetHeader("X-Api-Key"), bearerKey(c))
	if secret == "" {
		return who, g.unauthorized(c, "the API key is missing")
	}
	hash := intents.Digest([]byte(secret))
	key, ok := g.keys.Get(hash)
	if !ok {
		var err error
		if key, err = askRouter[bus.APIKeyReply](c.Request.Context(), g.cfg.Bus, bus.DirectoryAPIKey, bus.APIKeyRequest{Hash: hash}); err != nil {
			return who, err
		}
		if !key.Found {
			why := "the API key is not known"
			if isJWT(secret) {
				why = "a grant for reading opens /v1/intents, /v1/approvals and /v1/policy alone: send an API key here"
			}
			return who, g.unauthorized(c, why)
		}
		g.keys.Put(hash, key.Tenant, "", 1, key)
	}
	if key.InPerson && ofBearers[c.FullPath()] != nil {
		p := problem.New(intents.RBACForbidden, "", "the API key is for a person in the console or a terminal, and programs do not get it")
		p.Hint = "give the program a key of its own: writ apikey create NAME --user USER --role user"
		return who, p
	}
	who.key = key
	who.wrong = who.read(c.Request.Header, g.cfg.UserHeaders)
	var err error
	who.skill, err = g.skillKey(c)
	return who, err
}

// isJWT reports whether a credential has the form of a JWT, as no API key does.
func isJWT(secret string) bool { return strings.Count(secret, ".") == 2 }

// bearer returns the user of an access token, in the form of an API key of that user alone. The token
// itself goes no further. An address that has sent too many wrong ones is refused before its token is
// looked at, since that may ask the provider.
func (g *Gateway) bearer(c *gin.Context, token string) (bus.APIKeyReply, error) {
	if wait, spent := g.doors.Exhausted(ratelimit.Caller{Name: edge.Address(c.Request.RemoteAddr)}); spent {
		return bus.APIKeyReply{}, limited(wait)
	}
	issuer, u, err := g.cfg.People.AccessToken(c.Request.Context(), token, g.cfg.PublicURL+routeMCP)
	switch {
	case errors.Is(err, openid.ErrUnavailable):
		return bus.APIKeyReply{}, problem.New(intents.DispatchUnavailable, "", err.Error())
	case errors.Is(err, openid.ErrUnknown):
		p := problem.New(intents.RBACForbidden, "", "the access token is valid, and no user is mapped to its subject")
		p.Hint = "have the operator add its iss and sub to oidc in writ.yaml (the log has both)"
		return bus.APIKeyReply{}, p
	case err != nil:
		return bus.APIKeyReply{}, g.unauthorized(c, "the access token is not accepted: "+err.Error())
	}
	return bus.APIKeyReply{Found: true, ID: intents.CallerByToken(issuer, u.Subject), Tenant: u.Tenant, UserID: u.User, MaxRoles: u.Roles}, nil
}

// openWebUI is the header in which Open WebUI names its user.
const openWebUI = "X-OpenWebUI-User-Id"

// read reads the claims of the headers. The headers of a front end name the user as well, if the key
// may assert users.
func (c *caller) read(h http.Header, ofFrontEnds []string) error {
	users := []string{"X-User-Id"}
	if c.key.MayAssertUser {
		users = append(append(users, openWebUI), ofFrontEnds...)
	}
	for _, x := range []struct {
		into  *string
		at    string
		names []string
	}{{&c.header.Tenant, "/tenant_id", []string{"X-Tenant-Id"}}, {&c.header.User, "/user_id", users}, {&c.header.Session, "/session_id", []string{"X-Session-Id"}}} {
		for _, name := range x.names {
			for _, v := range h.Values(name) {
				if v != "" && !identifier.MatchString(v) {
					return problem.New(intents.SchemaInvalid, x.at, "the header "+name+" must match "+identifier.String())
				}
				if v != "" && *x.into != "" && v != *x.into {
					return problem.New(intents.SchemaInvalid, x.at, "the header "+name+" differs from another header of the request")
				}
				*x.into = cmp.Or(*x.into, v)
			}
		}
	}
	if c.key.FrontEnd && c.key.MayAssertUser && !c.lists {
		c.named = strings.Join(users, ", ")
	}
	return nil
}

func (g *Gateway) unauthorized(c *gin.Context, detail string) error {
	if err := meter(g.doors, ratelimit.Caller{Name: edge.Address(c.Request.RemoteAddr)}); err != nil {
		return err
	}
	p := problem.New(intents.Unauthorized, "", detail)
	if ofBearers[c.FullPath()] != nil {
		p.Hint = "send an API key as bearer: Authorization: Bearer KEY"
	}
	return p
}

// meter counts a request against a caller's rate.
func meter(limit *ratelimit.Limiter, who ratelimit.Caller) error {
	if wait, ok := limit.Allow(who); !ok {
		return limited(wait)
	}
	return nil
}

func limited(wait time.Duration) error {
	p := problem.New(intents.RateLimited, "", "")
	p.RetryAfter = wait
	return p
}

// identifier is the form of the names of people, tenants, sessions and plans.
var identifier = regexp.MustCompile(`^[A-Za-z0-9_.-]{1,64}$`)

// identify determines the user for whom a request acts. Headers and body must claim the same, and
// no more than the key allows: its own tenant, and its own user unless it may assert others. The
// roles are the key's, cut to those that the user has now.
func (g *Gateway) identify(ctx context.Context, who caller, body claim) (actor, error) {
	a, err := who.claims(body)
	if err != nil {
		return a, err
	}
	*who.metered = true
	if !isPaced(ctx) {
		if err := who.rate.meter(a); err != nil {
			return a, err
		}
	}
	reply, err := g.userNow(ctx, a, who.key.MaxRoles)
	if err == nil && reply.Operator && a.user != who.key.UserID {
		err = problem.New(intents.RBACForbidden, "/user_id", "the API key may not act for an operator")
	}
	a.roles, a.stops, a.position = reply.Roles, stoppedIn(reply).Stops(), reply.Position
	return a, err
}

// usersOfKey is the rate of a key in multiples of a user's rate; a key may act for many users.
const usersOfKey = 100

// rates are those of a user by one key, and of a key.
type rates struct{ users, keys *ratelimit.Limiter }

func newRates(requests int, window time.Duration, now func() time.Time) rates {
	return rates{ratelimit.New(requests, window, callers, now), ratelimit.New(usersOfKey*requests, window, callers, now)}
}

// meter counts a request against the rates of a user and of the key.
func (r rates) meter(a actor) error {
	if err := meter(r.users, ratelimit.Caller{Tenant: a.tenant, Key: a.keyID, Name: a.user}); err != nil {
		return err
	}
	return meter(r.keys, ratelimit.Caller{Tenant: a.tenant, Key: a.keyID})
}

// claims determines the user of a request, without roles.
func (c *caller) claims(body claim) (actor, error) {
	a := actor{keyID: c.key.ID, trace: c.trace, skillKey: c.skill}
	if err := cmp.Or(c.wrong, body.check()); err != nil {
		return a, err
	}
	for _, tenant := range []string{c.header.Tenant, body.Tenant} {
		if tenant != "" && tenant != c.key.Tenant {
			return a, problem.New(intents.RBACForbidden, "/tenant_id", "the API key is of another tenant")
		}
	}
	a.tenant = c.key.Tenant
	var err error
	if a.user, err = agreed("user_id", "X-User-Id", c.header.User, body.User); err != nil {
		return a, err
	}
	if a.session, err = agreed("session_id", "X-Session-Id", c.header.Session, body.Session); err != nil {
		return a, err
	}
	switch {
	case a.user == "" && c.named != "":
		p := problem.New(intents.SchemaInvalid, "/user_id", "the request of the front end does not say for which user it is")
		p.Hint = "have the front end send one of these headers: " + c.named
		return a, p
	case a.user == "" && c.key.UserID == "":
		return a, problem.New(intents.SchemaInvalid, "/user_id", "the API key belongs to no user: name the user")
	case a.user == "":
		a.user = c.key.UserID
	case a.user != c.key.UserID && !c.key.MayAssertUser:
		return a, problem.New(intents.RBACForbidden, "/user_id", "the API key may not act for other users")
	}
	return a, nil
}

// holder returns the actor of a request whose body names no user.
func (g *Gateway) holder(c *gin.Context) (actor, error) {
	who, err := g.authenticate(c)
	if err != nil {
		return actor{}, err
	}
	return g.identify(c.Request.Context(), who, claim{})
}

// rolesOf returns the roles that are still valid. A disabled user is refused.
func (g *Gateway) rolesOf(ctx context.Context, a actor, roles []string) ([]string, error) {
	reply, err := g.userNow(ctx, a, roles)
	return reply.Roles, err
}

// userNow is userOf with the roles that are still valid. A disabled user is refused.
func (g *Gateway) userNow(ctx context.Context, a actor, roles []string) (reply bus.UserReply, err error) {
	if reply, err = g.userOf(ctx, a, bus.UserRequest{Roles: roles}); err != nil {
		return bus.UserReply{}, err
	}
	if reply.Disabled {
		return bus.UserReply{}, problem.New(intents.RBACForbidden, "/user_id", "the user is disabled")
	}
	if now := g.cfg.Now(); now.Truncate(time.Second).Before(reply.RevokedBefore) { // a grant issued now would be void
		p := problem.New(intents.RateLimited, "/user_id", "the user's grants were revoked a moment ago")
		p.RetryAfter = reply.RevokedBefore.Sub(now) + time.Second
		return bus.UserReply{}, p
	}
	// Never more than the requested roles, whatever the answer is.
	left := slices.DeleteFunc(slices.Clone(reply.Roles), func(r string) bool { return !slices.Contains(roles, r) })
	reply.Roles = append([]string{}, left...)
	return reply, nil
}

// userOf asks the router's directory about the user of an actor.
func (g *Gateway) userOf(ctx context.Context, a actor, q bus.UserRequest) (bus.UserReply, error) {
	q.Tenant, q.UserID, q.KeyID = a.tenant, a.user, a.keyID
	return askRouter[bus.UserReply](ctx, g.cfg.Bus, bus.DirectoryUser, q)
}

// may returns an error if an actor's roles do not allow a type, before any work is done for it.
// The router decides when the intent arrives.
func (g *Gateway) may(ctx context.Context, a actor, typ string) error {
	row, ok := catalog.Builtin().Lookup(typ)
	if !ok {
		return fmt.Errorf("may: no intent type %q", typ)
	}
	return g.covers(ctx, a, row.Capability)
}

// covers returns an error if an actor's roles do not cover a capability.
func (g *Gateway) covers(ctx context.Context, a actor, capability string) error {
	_, err := g.covered(ctx, a, capability)
	return err
}

// covered is covers, with the complete answer of the directory.
func (g *Gateway) covered(ctx context.Context, a actor, capability string) (bus.UserReply, error) {
	reply, err := g.userOf(ctx, a, bus.UserRequest{Roles: a.roles, Capability: capability})
	if err == nil && (reply.Disabled || !reply.May) {
		err = problem.New(intents.RBACForbidden, "", "the actor lacks the capability "+capability)
	}
	return reply, err
}

func (c claim) check() error {
	for _, m := range []struct{ name, value string }{{"tenant_id", c.Tenant}, {"user_id", c.User}, {"session_id", c.Session}} {
		if m.value != "" && !identifier.MatchString(m.value) {
			return problem.New(intents.SchemaInvalid, "/"+m.name, "must match [A-Za-z0-9_.-]{1,64}")
		}
	}
	return nil
}

// agreed returns the value that a header and a member of the body agree on; either may be absent.
func agreed(member, header, fromHeader, fromBody string) (string, error) {
	if fromHeader != "" && fromBody != "" && fromHeader != fromBody {
		return "", problem.New(intents.SchemaInvalid, "/"+member, "differs from the header "+header)
	}
	return cmp.Or(fromBody, fromHeader), nil
}

// me is the answer of GET /v1/me.
type me struct {
	Tenant string           `json:"tenant_id"`
	User   string           `json:"user_id"`
	Roles  []string         `json:"roles"`
	Stops  []catalog.StopOf `json:"stops,omitempty"` // that stand in the tenant

	Position int64 `json:"position"` // of the newest record
}

// getMe is GET /v1/me: the user for whom a request with this key acts. With ?capability= it is
// refused unless the roles cover that capability.
func (g *Gateway) getMe(c *gin.Context, who caller) error {
	ctx := c.Request.Context()
	a, err := g.identify(ctx, who, claim{})
	if err == nil && c.Query("capability") != "" {
		err = g.covers(ctx, a, c.Query("capability"))
	}
	return respond(c, me{a.tenant, a.user, a.roles, a.stops, a.position}, err)
}

// getAPIKeys is GET /v1/apikeys: the API keys that are the user's own, without revoked ones and hashes.
func (g *Gateway) getAPIKeys(c *gin.Context, a actor) error {
	reply, err := g.userOf(c.Request.Context(), a, bus.UserRequest{Keys: true})
	return respond(c, map[string]json.RawMessage{"api_keys": reply.Keys}, err)
}

type pacedKey struct{}

// Paced marks a request of a part of this process that has counted its user's requests itself,
// such as the console, which makes many for one page. The rate does not count it.
func Paced(r *http.Request) *http.Request {
	return r.WithContext(context.WithValue(r.Context(), pacedKey{}, true))
}

func isPaced(ctx context.Context) bool { return ctx.Value(pacedKey{}) != nil }
