package node

import (
	"net/http"
	"strings"

	"aob.dev/writ/gateway/console"
	"aob.dev/writ/router/httpapi"
)

// handler serves the HTTP listener of `writ up`. Paths of the router go to its own
// interface, those of the console to that, all others to the gateway. An API key can read at both.
func (n *Node) handler() (http.Handler, error) {
	api := n.gateway.Reads(httpapi.New(httpapi.Config{
		Router: n.router, State: n.directory, Documents: n.documents, Policy: n.policy,
		Recorder: n.recorder, Ledger: proofs{n.ledger}, Health: n.health, Log: n.cfg.Log,
	}))
	others := n.gateway.Handler()
	both := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if routers(r.URL.Path) {
			api.ServeHTTP(w, r)
			return
		}
		others.ServeHTTP(w, r)
	})
	c, err := console.New(console.Config{API: both, Office: office{n}, Secure: strings.HasPrefix(n.cfg.PublicURL, "https://"), Now: n.cfg.Now, Log: n.cfg.Log})
	if err != nil {
		return nil, err
	}
	pages := c.Handler()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/console" || strings.HasPrefix(r.URL.Path, "/console/") {
			pages.ServeHTTP(w, r)
			return
		}
		both.ServeHTTP(w, r)
	}), nil
}

// routers says whether a path belongs to the router's interface.
func routers(path string) bool {
	if strings.HasPrefix(path, "/.well-known/oauth-protected-resource") {
		return false
	}
	for _, p := range []string{"/v1/intents", "/v1/batches", "/v1/approvals", "/v1/policy", "/v1/catalog", "/.well-known/", "/ledger/", "/openapi.json", "/readyz", "/livez"} {
		if path == p || strings.HasPrefix(path, p) {
			return true
		}
	}
	return false
}
