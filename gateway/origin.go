package gateway

import (
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/mark3labs/mcp-go/server"

	"aob.dev/writ/intents"
	"aob.dev/writ/internal/problem"
)

// expected refuses an MCP request that another site's page may have had a browser send: one whose
// Origin is neither public_url nor the requested host, or one that came to this machine alone
// under a name that is not this machine's (DNS rebinding).
func (g *Gateway) expected(r *http.Request) error {
	loopback := nearby(localAddress(r))
	if loopback && !nearby(r.Host) && !g.isPublic(r.Host) {
		return stranger("the header Host names another machine")
	}
	origin := r.Header.Get("Origin")
	if origin == "" {
		return nil
	}
	u, err := url.Parse(origin)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https":
	case slices.Contains(g.cfg.Origins, origin), g.isPublic(u.Host), loopback && nearby(u.Host), strings.EqualFold(u.Host, r.Host) && net.ParseIP(hostname(r.Host)) != nil:
		return nil
	}
	return stranger("the header Origin names a page of another site")
}

// shared lets pages of the origins in the settings call a handler and read its answers in a browser;
// at routeMCP also pages that this machine serves, such as those of an inspector. They send an API
// key; cookies are never allowed.
func (g *Gateway) shared(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		header, origin := w.Header(), r.Header.Get("Origin")
		header.Add("Vary", "Origin")
		if !slices.Contains(g.cfg.Origins, origin) && !ofThisMachine(r, origin) {
			h.ServeHTTP(w, r)
			return
		}
		header.Set("Access-Control-Allow-Origin", origin)
		header.Set("Access-Control-Expose-Headers", "Location, Mcp-Session-Id, Retry-After, WWW-Authenticate, X-Plan-Id, X-Should-Retry")
		if r.Method != http.MethodOptions {
			h.ServeHTTP(w, r)
			return
		}
		header.Set("Access-Control-Allow-Methods", "GET, POST, PUT, DELETE")
		header.Set("Access-Control-Allow-Headers", r.Header.Get("Access-Control-Request-Headers"))
		header.Set("Access-Control-Max-Age", "600")
		w.WriteHeader(http.StatusNoContent)
	})
}

// ofThisMachine reports whether a page that this machine serves calls its MCP server.
func ofThisMachine(r *http.Request, origin string) bool {
	if r.URL.Path != routeMCP && !strings.HasPrefix(r.URL.Path, server.WellKnownProtectedResourcePath) {
		return false
	}
	u, err := url.Parse(origin)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && nearby(u.Host) && nearby(localAddress(r)) && nearby(r.Host)
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
		return g.cfg.PublicURL
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

// isPublic reports whether a host is that of public_url.
func (g *Gateway) isPublic(host string) bool {
	without := func(host string) string {
		return strings.TrimSuffix(host, map[string]string{"http": ":80", "https": ":443"}[g.public.Scheme])
	}
	return g.public.Host != "" && strings.EqualFold(without(g.public.Host), without(host))
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
