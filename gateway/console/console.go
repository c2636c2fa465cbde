// Package console is the browser interface of the gateway: pages below /console, rendered on the
// server. It reads and acts through the HTTP interface of its own process, as the person whose
// API key opened the session; it decides nothing.
//
//	/console/now              intents as they are decided
//	/console/plans            plans; …/{plan_id}: one with its intents
//	/console/approvals        pending approvals; …/{intent_id}: one, to decide it
//	/console/intents/{id}      an intent with signature, policy, outcome, receipt and proof
//	/console/agents           agents and skills
//	/console/connect/{link}   connect to a skill server
//	/console/policies         rules that fired, explanations
//	/console/record           search, bundle, checkpoint
//	/console/health           stores, breakers, and the cost of models
//	/console/stop             an emergency stop, and its end
//	/console/you              the person's own roles, connections and notices
package console

import (
	"bytes"
	"cmp"
	"context"
	"embed"
	"errors"
	"fmt"
	"html/template"
	"io"
	"io/fs"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"time"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/openid"
	"aob.dev/writ/internal/problem"
	"aob.dev/writ/internal/ratelimit"
)

// Config of a console. API is required.
type Config struct {
	API       http.Handler      // the HTTP interface of this process, and that of package consoleapi
	Witnesses []string          // that cosign checkpoints, by name
	People    *openid.Providers // at which people sign in; nil: by API key alone
	// Notices lists the receivers that are told of what somebody may approve; nil: unknown.
	Notices   func(tenant, user string, roles []string) []string
	PublicURL string // where people reach writ, without a slash at its end; empty: at the listener
	Now       func() time.Time
	Log       *slog.Logger
}

// Console serves the pages.
type Console struct {
	Config
	sessions *ratelimit.Recent[*session] // by id
	root     string                      // path of PublicURL
	pages    map[string]*template.Template
	rate     *ratelimit.Limiter
	live     *ratelimit.Limiter
	streams  *ratelimit.Places
	origins  *http.CrossOriginProtection
}

// Bounds of one session: pages of a window, and streams opened in a minute.
const (
	pageRate   = 600
	pageWindow = 15 * time.Minute
	streamRate = 30
	maxStreams = 256 // concurrent, of all
	maxForm    = 1 << 20
)

//go:embed templates static
var files embed.FS

// New creates a console.
func New(cfg Config) (*Console, error) {
	if cfg.API == nil {
		return nil, errors.New("console: needs the interface")
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	cfg.Log = cmp.Or(cfg.Log, slog.Default())
	c := &Console{
		Config: cfg, sessions: ratelimit.NewRecent[*session](shares, sessionLife, cfg.Now), pages: map[string]*template.Template{},
		rate: ratelimit.New(pageRate, pageWindow, shares, cfg.Now), live: ratelimit.New(streamRate, time.Minute, shares, cfg.Now), streams: ratelimit.NewPlaces(maxStreams),
	}
	public, err := url.Parse(cfg.PublicURL)
	if err != nil {
		return nil, err
	}
	c.root, c.origins = public.Path, http.NewCrossOriginProtection()
	if public.Host != "" {
		if err := c.origins.AddTrustedOrigin(public.Scheme + "://" + public.Host); err != nil {
			return nil, err
		}
	}
	root := template.FuncMap{"root": func() string { return c.root }}
	names, err := fs.Glob(files, "templates/*.html")
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		t, err := template.New("layout.html").Funcs(functions).Funcs(root).ParseFS(files, "templates/layout.html", name)
		if err != nil {
			return nil, err
		}
		c.pages[strings.TrimSuffix(strings.TrimPrefix(name, "templates/"), ".html")] = t
	}
	return c, nil
}

// contentPolicy is the Content-Security-Policy: only content of this origin, and no inline script
// or style.
const contentPolicy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

// Handler serves everything below /console.
func (c *Console) Handler() http.Handler {
	m := http.NewServeMux()
	static, _ := fs.Sub(files, "static") // it is embedded
	m.Handle("GET /console/static/", http.StripPrefix("/console/static/", http.FileServerFS(static)))
	m.HandleFunc("GET /console/login", c.showLogin)
	m.HandleFunc("POST /console/login", c.login)
	m.HandleFunc("POST "+signInPath, c.paced(c.beginSignIn))
	m.HandleFunc("GET "+signInPath, c.paced(c.endSignIn))
	m.Handle("POST /console/logout", c.page("login", c.logout))
	m.HandleFunc("GET "+catalog.ConnectReturn, c.connected)
	for pattern, p := range map[string]struct {
		name string
		show func(*request) (any, error)
	}{
		"GET /console":                       {"now", c.home},
		"GET /console/{$}":                   {"now", c.home},
		"GET /console/find":                  {"problem", c.lookUp},
		"GET /console/live":                  {"", c.changes},
		"GET /console/now":                   {"now", c.now},
		"GET /console/plans":                 {"plans", c.plans},
		"GET /console/plans/{id}":            {"plan", c.plan},
		"GET /console/plans/{id}/events":     {"", c.planEvents},
		"GET /console/plans/{id}/logs":       {"logs", c.logs},
		"POST /console/plans/{id}/cancel":    {"", c.cancelPlan},
		"POST /console/plans/{id}/replay":    {"", c.replayRun},
		"GET /console/intents/{id}":          {"intent", c.intent},
		"GET /console/intents/{id}/proof":    {"", c.proof},
		"GET /console/approvals":             {"approvals", c.approvals},
		"GET /console/approvals/{id}":        {"approval", c.approval},
		"POST /console/approvals/{id}":       {"approval", c.decide},
		"GET /console/agents":                {"agents", c.agents},
		"GET /console/skills/{name}":         {"skill", c.skill},
		"POST /console/skills/{name}":        {"skill", c.approveSkill},
		"GET /console/connect/{link}":        {"connect", c.showConnect},
		"POST /console/connect/{link}":       {"connect", c.beginConnect},
		"GET /console/connected/end":         {"connect", c.endConnect},
		"GET /console/policies":              {"policies", c.policies},
		"GET /console/policies/explain/{id}": {"explain", c.explain},
		"GET /console/record":                {"record", c.record},
		"POST /console/record/bundle":        {"", c.bundle},
		"GET /console/record/intents":        {"", c.export},
		"GET /console/health":                {"health", c.health},
		"GET " + stopPath:                    {"stop", c.showStop},
		"POST " + stopPath:                   {"stop", c.stop},
		"GET " + sessionPath:                 {"", c.sessionNow},
		"POST " + sessionPath:                {"", c.sessionNow},
		"GET /console/you":                   {"you", c.you},
		"POST /console/you/connect":          {"", c.toConnect},
		"POST /console/you/disconnect":       {"", c.disconnect},
	} {
		m.Handle(pattern, c.page(p.name, p.show))
	}
	guarded := c.origins.Handler(m)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", contentPolicy)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Cache-Control", "no-store")
		r.Body = http.MaxBytesReader(w, r.Body, maxForm)
		guarded.ServeHTTP(w, r)
	})
}

// request is a request of a person with a session.
type request struct {
	*http.Request
	w http.ResponseWriter
	s *session
	c *Console
}

// view is the input of a page's layout.
type view struct {
	Page, Path string
	Session    *session // nil: nobody is logged in
	Message    string
	Body       any
	Ends       ending
	standing
}

// errDone means that a handler has already answered.
var errDone = errors.New("console: answered")

// page is a route for people with a session. Forms carry the session's token.
func (c *Console) page(name string, show func(*request) (any, error)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s, err := c.session(w, r)
		if errors.Is(err, errNoSession) {
			c.toLogin(w, r)
			return
		}
		q := &request{r, w, s, c}
		var body any
		if err == nil {
			err = q.allowed()
		}
		if err == nil {
			body, err = show(q)
		}
		switch {
		case errors.Is(err, errDone):
		case err != nil:
			c.fail(w, r, s, err)
		default:
			c.render(w, r, http.StatusOK, name, s, body)
		}
	})
}

// allowed counts the request, and checks the token of a form.
func (q *request) allowed() error {
	if wait, ok := q.c.rate.Allow(q.s.metered()); !ok {
		p := problem.New(intents.RateLimited, "", "")
		p.RetryAfter = wait
		return p
	}
	if q.Method == http.MethodPost && !q.s.sent(q.PostFormValue("csrf")) {
		return problem.New(intents.RBACForbidden, "", "the form does not belong to this session: open the page again, and send it from there")
	}
	return nil
}

// see redirects the browser to a page, which shows a message once.
func (q *request) see(path, said string) (any, error) {
	q.s.say(said)
	http.Redirect(q.w, q.Request, q.c.root+path, http.StatusSeeOther)
	return nil, errDone
}

func (c *Console) render(w http.ResponseWriter, r *http.Request, status int, name string, s *session, body any) {
	var out bytes.Buffer
	v := view{Page: name, Path: r.URL.Path, Session: s, Message: s.takeMessage(), Body: body, Ends: c.ends(s), standing: c.standing(r.Context(), s)}
	if err := c.pages[name].Execute(&out, v); err != nil {
		c.Log.ErrorContext(r.Context(), "console page", slog.String("page", name), slog.String("error", err.Error()))
		http.Error(w, "the page could not be made", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_, _ = out.WriteTo(w)
}

// pageError shows a refusal: the code, the state, and what to do next.
type pageError struct {
	*problem.Problem
	Stands string
}

func (c *Console) fail(w http.ResponseWriter, r *http.Request, s *session, err error) {
	p := problem.FromError(err)
	if p.Code == intents.Internal && !errors.As(err, new(*problem.Problem)) && r.Context().Err() == nil {
		c.Log.ErrorContext(r.Context(), "console", slog.String("path", r.URL.Path), slog.String("error", err.Error()))
	}
	c.render(w, r, p.Status, "problem", s, pageError{p, stands(r, p)})
}

// stands says what holds after a request that failed.
func stands(r *http.Request, p *problem.Problem) string {
	switch {
	case r.Method == http.MethodPost && (p.Code == intents.ExecutorTimeout || p.Code == intents.Internal || p.Code == intents.InFlight):
		return "It is not known here whether it was carried out: look into the record before you try again."
	case p.IntentID != "":
		return "Nothing was changed. What you asked for and its refusal are in the record."
	default:
		return "Nothing was changed."
	}
}

// ask sends a request to the API for a person, and decodes the answer.
func (c *Console) ask(ctx context.Context, who credentials, method, path string, in, out any) error {
	a, err := c.fetch(ctx, who, method, path, in)
	if err == nil && out != nil {
		err = decode(a, out)
	}
	return err
}

func (q *request) get(path string, out any) error {
	return q.c.ask(q.Context(), q.s.credentials, http.MethodGet, path, nil, out)
}

func (q *request) post(path string, in, out any) error {
	return q.c.ask(q.Context(), q.s.credentials, http.MethodPost, path, in, out)
}

// may returns an error unless the person's roles now cover a capability.
func (q *request) may(capability string) error {
	return q.get("/v1/me?capability="+capability, nil)
}

// stream takes a place for a stream.
func (q *request) stream() (leave func(), err error) {
	if wait, ok := q.c.live.Allow(q.s.metered()); !ok {
		p := problem.New(intents.RateLimited, "", "")
		p.RetryAfter = wait
		return nil, p
	}
	leave, ok := q.c.streams.Take(q.s.metered().Tenant, q.s.metered().Key)
	if !ok {
		p := problem.New(intents.Overloaded, "", "too many pages of this API key or its tenant are open")
		p.RetryAfter = streamLife
		return nil, p
	}
	return leave, nil
}

// changes is a stream with an event for every decision that the person may see and for every approval
// that begins or ends to wait for them. It reads only after the record has grown. It ends with the
// session, with the page, and after some minutes: the browser reconnects.
func (c *Console) changes(q *request) (any, error) {
	leave, err := q.stream()
	if err != nil {
		return nil, err
	}
	defer leave()
	h := q.w.Header()
	h.Set("Content-Type", "text/event-stream")
	flush := http.NewResponseController(q.w)
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	end := time.NewTimer(streamLife)
	defer end.Stop()
	last, at := "", int64(-1)
	for looks := 0; ; looks++ {
		if _, err := c.session(q.w, q.Request); err != nil {
			return nil, errDone
		}
		said := ""
		if looks%looksAlive == 0 {
			said = ": nothing\n\n"
		}
		if stops, position := q.s.now(); position != at {
			a, err := c.fetch(q.Context(), q.s.credentials, http.MethodGet, "/v1/intents?limit=20", nil)
			ids := c.waiting(q.Context(), q.s)
			if now := fmt.Sprint(a.Body.String(), ids, stops); err == nil {
				at = position
				if now != last {
					event := "changed"
					if last == "" {
						event = "began"
					}
					last, said = now, fmt.Sprintf("event: %s\ndata: {\"waiting\":%d,\"stops\":%d}\n\n", event, len(ids), len(stops))
				}
			}
		}
		if said != "" {
			if _, err := io.WriteString(q.w, said); err != nil {
				return nil, errDone
			}
			if err := flush.Flush(); err != nil {
				return nil, errDone
			}
		}
		select {
		case <-q.Context().Done():
			return nil, errDone
		case <-end.C:
			return nil, errDone
		case <-look.C:
		}
	}
}

const (
	lookEvery  = 400 * time.Millisecond
	looksAlive = 5 // after so many looks the stream says that it is there
	streamLife = 5 * time.Minute
)
