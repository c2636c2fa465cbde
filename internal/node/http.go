package node

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/url"
	"strings"

	"aob.dev/writ/audit"
	"aob.dev/writ/bus"
	"aob.dev/writ/bus/natsserver"
	"aob.dev/writ/cell"
	"aob.dev/writ/executors/skills/approval"
	"aob.dev/writ/gateway/console"
	"aob.dev/writ/gateway/consoleapi"
	"aob.dev/writ/gateway/consoleapi/reads"
	"aob.dev/writ/gateway/readapi"
	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/datadir"
	"aob.dev/writ/internal/health"
	"aob.dev/writ/internal/problem/edge"
	"aob.dev/writ/monitor"
	"aob.dev/writ/router/httpapi"
)

// handler serves the HTTP listener. Paths of the router and of the ledger go to those, in
// this process or in others; those of the console to that; all others to the gateway. With a
// gateway, an API key can read at the router, too.
func (n *Node) handler() (http.Handler, error) {
	api, err := n.routers()
	if err != nil {
		return nil, err
	}
	log := api
	if !n.standalone() {
		proofs, err := n.ledgerAPI()
		if err != nil {
			return nil, err
		}
		log = proofs.Handler()
	}
	others := n.status()
	if n.gateway != nil {
		others = n.gateway.Handler()
	}
	all := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch path := r.URL.Path; {
		case strings.HasPrefix(path, "/ledger/"):
			log.ServeHTTP(w, r)
		case path == monitor.ProcessStatusPath && n.follows() && !n.standalone():
			n.processStatus().ServeHTTP(w, r)
		case path == "/livez" || path == "/readyz":
			n.ready(api, others).ServeHTTP(w, r)
		case ofRouters(path), n.router != nil && !n.standalone() && (strings.HasPrefix(path, consoleapi.Path) || strings.HasPrefix(path, readapi.Path)): // for gateways elsewhere
			api.ServeHTTP(w, r)
		default:
			others.ServeHTTP(w, r)
		}
	})
	if n.gateway == nil {
		return all, nil
	}
	h, err := n.withConsole(all, api)
	return underPublicURL(n.cfg.PublicURL, h), err
}

// underPublicURL serves a handler at the path of public_url, too: a proxy may pass requests on as
// they are.
func underPublicURL(public string, h http.Handler) http.Handler {
	path := publicPath(public)
	if path == "" {
		return h
	}
	return below(path+"/", http.StripPrefix(path, h), h)
}

// consoleURL is where browsers reach the console: by it a cookie is kept to TLS. Empty: at the listener,
// without TLS.
func (n *Node) consoleURL() string {
	if n.cfg.PublicURL == "" && n.secure != nil {
		return n.URL()
	}
	return n.cfg.PublicURL
}

// publicPath is the path of public_url, which begins the paths that browsers are sent to.
func publicPath(public string) string {
	u, err := url.Parse(public)
	if err != nil {
		return "" // it was checked
	}
	return u.Path
}

// routers is the router's interface, with which a gateway reads, too.
func (n *Node) routers() (http.Handler, error) {
	if n.api != nil {
		return n.api, nil
	}
	api, err := n.routerAPI()
	if err == nil && n.gateway != nil {
		api = n.gateway.Reads(api)
	}
	n.api = api
	return api, err
}

// routerAPI is the router's interface: here, or that of other processes.
func (n *Node) routerAPI() (http.Handler, error) {
	if n.router == nil {
		return cell.Forward(n.cfg.Cluster.Routers, "router", "routers", n.cfg.Log)
	}
	n.access = httpapi.OpenAccessLog(datadir.AccessLog(n.cfg.Dir), n.cfg.Log)
	proofs, err := n.ledgerAPI()
	return httpapi.New(httpapi.Config{
		Router: n.router, State: n.directory, Documents: n.documents, Policy: n.policy,
		Recorder: n.index, Ledger: proofs, Health: n.health, ConsoleAPI: n.consoleAPI(), Prices: n.cfg.Prices, Cached: n.cachedAnswers,
		Access: n.access, Root: publicPath(n.cfg.PublicURL), Now: n.cfg.Now, Log: n.cfg.Log,
	}), err
}

// ready chooses the interface that reports readiness.
func (n *Node) ready(router, others http.Handler) http.Handler {
	if n.router != nil {
		return router
	}
	return others
}

// status is the interface of a process that has none but for probes.
func (n *Node) status() http.Handler {
	routes := edge.NewRoutes(n.cfg.Log, "")
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/readyz" {
			routes.ServeHTTP(w, r)
			return
		}
		answer := struct {
			Status     string             `json:"status"`
			Conditions []health.Condition `json:"conditions,omitempty"`
		}{"ok", n.health.List()}
		if len(answer.Conditions) > 0 {
			answer.Status = "degraded"
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(answer) // the client is gone
	})
}

// withConsole serves the console as well. It uses the interface for people, and the console API of
// a router.
func (n *Node) withConsole(all, router http.Handler) (http.Handler, error) {
	var witnesses []string
	for _, w := range n.cfg.Witnesses {
		witnesses = append(witnesses, w.Key.Name())
	}
	inside := below(consoleapi.Path, router, all)
	c, err := console.New(console.Config{API: inside, Witnesses: witnesses, Notices: n.noticesFor, PublicURL: n.consoleURL(), People: n.cfg.People, Now: n.cfg.Now, Log: n.cfg.Log})
	if err != nil {
		return nil, err
	}
	return below("/console/", c.Handler(), all), nil
}

// below sends requests for a path and below it to one handler, and all others to another.
func below(path string, it, others http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path+"/", path) {
			it.ServeHTTP(w, r)
			return
		}
		others.ServeHTTP(w, r)
	})
}

// ofRouters reports whether a path belongs to the router's interface.
func ofRouters(path string) bool {
	if strings.HasPrefix(path, "/.well-known/oauth-protected-resource") {
		return false
	}
	for _, p := range []string{"/v1/intents", "/v1/batches", "/v1/approvals", "/v1/policy", "/v1/catalog", "/.well-known/", "/openapi.json"} {
		if path == p || strings.HasPrefix(path, p) {
			return true
		}
	}
	return false
}

// consoleAPI is this process's part of the console API.
func (n *Node) consoleAPI() *reads.Reads {
	r := &reads.Reads{
		Journal: n.journal, State: n.directory, Live: n.policy, Documents: n.documents, Recent: n.recent, Board: n.health,
		Source: audit.Source{Origin: n.Origin(), Records: n.journal, Blobs: n.blobs}, Blob: n.systemBlob, Look: n.Look, Log: n.cfg.Log,
		Declared: func(ctx context.Context) (json.RawMessage, error) {
			ctx, cancel := context.WithTimeout(ctx, lookTime)
			defer cancel()
			return n.conns.of(natsserver.Router).Request(ctx, bus.SkillVersions, nil)
		},
	}
	if n.standalone() {
		r.Archive = n.Archive
	}
	return r
}

// tellVersions returns the skill versions that servers declare, as this process last saw them.
func (n *Node) tellVersions(ctx context.Context, _ []byte) []byte {
	list, err := approval.ReadVersions(n.cfg.Dir)
	raw, bad := json.Marshal(list)
	if err = errors.Join(err, bad); err != nil {
		n.cfg.Log.WarnContext(ctx, "the declared versions of skills cannot be read", slog.String("error", err.Error()))
	}
	return raw
}

// cachedAnswers asks an executor of skills for the cached answers that serve a user.
func (n *Node) cachedAnswers(ctx context.Context, of intents.Principal) (out catalog.CacheStatsResult, err error) {
	ctx, cancel := context.WithTimeout(ctx, lookTime)
	defer cancel()
	question, _ := json.Marshal(bus.SkillAnswersRequest{Tenant: of.Tenant, UserID: of.UserID}) // plain data
	raw, err := n.conns.of(natsserver.Router).Request(ctx, bus.SkillAnswers, question)
	if err != nil {
		n.cfg.Log.WarnContext(ctx, "no executor of skills reports its kept answers", slog.String("error", err.Error()))
		return out, intents.Refuse(intents.DispatchUnavailable, "", "no executor of skills answers")
	}
	return out, json.Unmarshal(raw, &out)
}

// tellAnswers reports the cached answers of this process that serve a user.
func (n *Node) tellAnswers(_ context.Context, question []byte) []byte {
	var q bus.SkillAnswersRequest
	_ = json.Unmarshal(question, &q) // of nobody: none
	raw, _ := json.Marshal(n.answers.Stats(intents.Principal{Tenant: q.Tenant, UserID: q.UserID}))
	return raw
}
