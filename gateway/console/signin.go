package console

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strings"

	"aob.dev/writ/intents"
	"aob.dev/writ/internal/openid"
	"aob.dev/writ/internal/problem"
	"aob.dev/writ/internal/problem/edge"
	"aob.dev/writ/internal/ratelimit"
)

// signInCookie keeps what a browser has begun at an OpenID provider. Browsers send it when they come
// back from there, which they would not do with the session's.
const signInCookie = "writ_signin"

// signInPath is where people come back to.
const signInPath = "/console/signin"

const signInSeconds = 600

// provider is one at which people can sign in.
type provider struct{ Issuer, Host string }

func (c *Console) providers() (list []provider) {
	for _, at := range c.People.SignInAt() {
		if u, err := url.Parse(at.Issuer); err == nil {
			list = append(list, provider{at.Issuer, u.Host})
		}
	}
	return list
}

// resource is what access tokens of people are for.
func (c *Console) resource() string { return c.PublicURL + "/mcp" }

// paced counts an attempt to sign in against its address, since each asks the provider.
func (c *Console) paced(next func(http.ResponseWriter, *http.Request)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if wait, ok := c.rate.Allow(ratelimit.Caller{Key: signInPath, Name: edge.Address(r.RemoteAddr)}); !ok {
			p := problem.New(intents.RateLimited, "", "")
			p.RetryAfter = wait
			c.fail(w, r, nil, p)
			return
		}
		next(w, r)
	}
}

// beginSignIn sends the browser to a provider.
func (c *Console) beginSignIn(w http.ResponseWriter, r *http.Request) {
	s, to, err := c.People.Begin(r.Context(), r.PostFormValue("issuer"), c.PublicURL+signInPath, c.resource(), next(r.PostFormValue("next")))
	if err != nil {
		c.refuseSignIn(w, r, s.Next, err)
		return
	}
	doc, err := json.Marshal(s)
	if err != nil {
		c.refuseSignIn(w, r, s.Next, err)
		return
	}
	http.SetCookie(w, c.signInCookie(base64.RawURLEncoding.EncodeToString(doc), signInSeconds))
	c.sendOn(w, r, nil, to)
}

// endSignIn opens a session for the person whom the provider names.
func (c *Console) endSignIn(w http.ResponseWriter, r *http.Request) {
	var begun openid.SignIn
	cookie, err := r.Cookie(signInCookie)
	if err == nil {
		var doc []byte
		if doc, err = base64.RawURLEncoding.DecodeString(cookie.Value); err == nil {
			err = json.Unmarshal(doc, &begun)
		}
	}
	if err != nil {
		c.refuseSignIn(w, r, "", errors.New("this browser has begun no sign-in, or more than ten minutes ago"))
		return
	}
	http.SetCookie(w, c.signInCookie("", -1))
	person, err := c.People.Finish(r.Context(), begun, r.URL.Query(), c.PublicURL+signInPath, c.resource())
	if err != nil {
		c.refuseSignIn(w, r, begun.Next, err)
		return
	}
	c.enter(w, r, &session{credentials: credentials{person: person, address: r.RemoteAddr, entering: true, secure: r.TLS != nil}}, begun.Next, func() {
		c.sendOn(w, r, nil, c.root+next(begun.Next)) // a redirect would come from the provider's site: without the session's cookie
	})
}

func (c *Console) refuseSignIn(w http.ResponseWriter, r *http.Request, then string, err error) {
	p := problem.New(intents.Unauthorized, "", strings.TrimPrefix(err.Error(), "openid: "))
	p.Hint = "Sign in again."
	switch {
	case errors.Is(err, openid.ErrUnavailable):
		p = problem.New(intents.DispatchUnavailable, "", "the OpenID provider does not answer")
	case errors.Is(err, openid.ErrUnknown):
		p = problem.New(intents.RBACForbidden, "", "the provider knows you, and no user is mapped to you")
		p.Hint = "Have the operator add your iss and sub to oidc in writ.yaml (the log has both)."
	}
	c.render(w, r, p.Status, "login", nil, entrance{next(then), c.providers(), p})
}

func (c *Console) signInCookie(value string, seconds int) *http.Cookie {
	k := c.cookie(value, seconds) //nolint:gosec // G124: it is HttpOnly, and Secure where people come by TLS
	k.Name, k.Path, k.SameSite = signInCookie, c.root+signInPath, http.SameSiteLaxMode
	return k
}
