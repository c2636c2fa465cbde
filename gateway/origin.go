package gateway

import (
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/gin-gonic/gin"

	"aob.dev/writ/intents"
	"aob.dev/writ/internal/problem"
)

// expected refuses an MCP request that another site's page may have had a browser send: one whose
// Origin is neither public_url nor the requested host, or one that came to this machine alone
// under a name that is not this machine's (DNS rebinding).
func (g *Gateway) expected(r *http.Request) error {
	loopback := nearby(localAddress(r))
	if loopback && !nearby(r.Host) && !g.public(r.Host) {
		return stranger("the header Host names another machine")
	}
	origin := r.Header.Get("Origin")
	if origin == "" {
		return nil
	}
	u, err := url.Parse(origin)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https":
	case slices.Contains(g.cfg.Origins, origin), g.public(u.Host), loopback && nearby(u.Host), strings.EqualFold(u.Host, r.Host) && net.ParseIP(hostname(r.Host)) != nil:
		return nil
	}
	return stranger("the header Origin names a page of another site")
}

// share lets pages of the origins in the settings read answers in a browser. They send an API key;
// cookies are never allowed.
func (g *Gateway) share(c *gin.Context) {
	if len(g.cfg.Origins) == 0 {
		return
	}
	h := c.Writer.Header()
	h.Add("Vary", "Origin")
	if origin := c.GetHeader("Origin"); slices.Contains(g.cfg.Origins, origin) {
		h.Set("Access-Control-Allow-Origin", origin)
		h.Set("Access-Control-Expose-Headers", "Location, Mcp-Session-Id, Retry-After, X-Plan-Id, X-Should-Retry")
	}
}

// preflights answers browsers that ask, before a request of a page of another site, whether a route
// allows it.
func (g *Gateway) preflights(r *gin.Engine) {
	if len(g.cfg.Origins) == 0 {
		return
	}
	methods := make(map[string][]string)
	for _, route := range r.Routes() {
		methods[route.Path] = append(methods[route.Path], route.Method)
	}
	for path, allowed := range methods {
		r.OPTIONS(path, func(c *gin.Context) {
			if h := c.Writer.Header(); h.Get("Access-Control-Allow-Origin") != "" {
				h.Set("Access-Control-Allow-Methods", strings.Join(allowed, ", "))
				h.Set("Access-Control-Allow-Headers", c.GetHeader("Access-Control-Request-Headers"))
				h.Set("Access-Control-Max-Age", "600")
			}
			c.Status(http.StatusNoContent)
		})
	}
}

// onlyHere reports whether a request was sent on this machine, to this machine, by no proxy and
// by no page of a browser, to a writ that cannot be reached from elsewhere.
func (g *Gateway) onlyHere(r *http.Request) bool {
	for name := range r.Header {
		if name == "Forwarded" || name == "Via" || name == "Origin" || name == "X-Real-Ip" || strings.HasPrefix(name, "X-Forwarded-") {
			return false
		}
	}
	return g.cfg.PublicURL == "" && nearby(localAddress(r)) && nearby(r.RemoteAddr) && nearby(r.Host)
}

func stranger(why string) error {
	return problem.New(intents.RBACForbidden, "", why+": if people reach writ there, set public_url to that address")
}

// baseURL is the address of this server for the client, as far as it is known: public_url,
// otherwise the address of the connection. A name in the header Host is repeated only if it is an
// address.
func (g *Gateway) baseURL(r *http.Request) string {
	if g.cfg.PublicURL != "" {
		return strings.TrimSuffix(g.cfg.PublicURL, "/")
	}
	scheme := "http"
	if r.TLS != nil || r.Header.Get("X-Forwarded-Proto") == "https" {
		scheme = "https"
	}
	host := localAddress(r)
	if name := hostname(r.Host); name == "localhost" || net.ParseIP(name) != nil {
		host = r.Host
	}
	return scheme + "://" + host
}

// public reports whether a host, with its port, is that of public_url.
func (g *Gateway) public(host string) bool {
	u, err := url.Parse(g.cfg.PublicURL)
	return err == nil && u.Host != "" && strings.EqualFold(u.Host, host)
}

// localAddress is the local address of a request's connection.
func localAddress(r *http.Request) string {
	if at, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr); ok {
		return at.String()
	}
	return ""
}

// nearby reports whether a host, with or without a port, is this machine and no other.
func nearby(host string) bool {
	name := hostname(host)
	return strings.EqualFold(name, "localhost") || net.ParseIP(name).IsLoopback()
}

// hostname returns a host without its port; empty if it is invalid.
func hostname(host string) string {
	u, err := url.Parse("//" + host)
	if err != nil || u.Host != host {
		return ""
	}
	return u.Hostname()
}
