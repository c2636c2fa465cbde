package console

import (
	"crypto/rand"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/openid"
	"aob.dev/writ/internal/problem"
	"aob.dev/writ/internal/ratelimit"
)

// cookieName of the session. Its value is a random number that only the console accepts, and
// browsers send it only there.
const cookieName = "writ_console"

// A session lasts for sessionLife after its last page, and for longestSession in all.
const (
	sessionLife    = time.Hour
	longestSession = 12 * time.Hour
	maxSessions    = 10_000
)

// shares are of the sessions: of all, of a tenant's, and of those opened with one key.
var shares = ratelimit.Shares{All: maxSessions, Tenant: 2000, Key: 200}

// credentials are those of requests to the API.
type credentials struct {
	key, user, address string
	person             *openid.Session // who has signed in at a provider; nil: key counts
	entering           bool            // the API counts the request as one of that user
	secure             bool            // people come by TLS to this process
}

// session of a person. It ends with its key: each page asks the API for the key's user.
type session struct {
	credentials
	id     string // digest of the cookie's value
	began  time.Time
	CSRF   string
	Tenant string
	User   string

	mu       sync.Mutex       // guards what follows
	message  string           // for the next page
	stops    []catalog.StopOf // that stood in the tenant at the last request
	position int64            // of the newest record at the last request
	seen     time.Time        // when it was prolonged
}

func (s *session) sent(token string) bool {
	return subtle.ConstantTimeCompare([]byte(s.CSRF), []byte(token)) == 1
}

func (s *session) say(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.message = text
}

func (s *session) takeMessage() (text string) {
	if s == nil {
		return ""
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	text, s.message = s.message, ""
	return text
}

// begin creates a session, which is in memory only: after a restart people log in again. token is for
// the cookie. At the limit the least recently used session ends.
func (c *Console) begin(s *session) (token string) {
	token, s.CSRF = rand.Text(), rand.Text()
	s.id, s.began = intents.Digest([]byte(token)), c.Now()
	s.seen = s.began
	m := s.metered()
	c.sessions.Put(s.id, m.Tenant, m.Key, 1, s)
	return token
}

func (c *Console) find(token string) (*session, bool) {
	return c.sessions.Get(intents.Digest([]byte(token)))
}

// metered names the count of a session's requests.
func (s *session) metered() ratelimit.Caller {
	key := s.key
	if s.person != nil {
		key = intents.CallerByToken(s.person.Issuer, s.person.User.Subject)
	}
	return ratelimit.Caller{Tenant: s.Tenant, Key: intents.Digest([]byte(key)), Name: s.id}
}

var errNoSession = errors.New("console: no session")

// keyInfo is the API's information about a key.
type keyInfo struct {
	Tenant string           `json:"tenant_id"`
	User   string           `json:"user_id"`
	Roles  []string         `json:"roles"`
	Stops  []catalog.StopOf `json:"stops"`

	Position int64 `json:"position"` // of the newest record
}

// prolong makes a session that is used last, up to longestSession in all. Its cookie lasts as long.
func (c *Console) prolong(w http.ResponseWriter, s *session, token string) {
	now := c.Now()
	s.mu.Lock()
	due := now.Sub(s.seen) > sessionLife/10
	if due {
		s.seen = now
	}
	s.mu.Unlock()
	left := min(sessionLife, s.began.Add(longestSession).Sub(now))
	if !due || left < sessionLife/10 {
		return
	}
	m := s.metered()
	c.sessions.Put(s.id, m.Tenant, m.Key, 1, s)
	http.SetCookie(w, c.cookie(token, int(left.Seconds())))
}

// now is what stands in the tenant, and the position of the newest record.
func (s *session) now() (stops []catalog.StopOf, position int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.stops, s.position
}

// ending is when a session ends. The script of a page asks for it, and warns.
type ending struct {
	Seconds int    `json:"seconds"` // until then
	Last    bool   `json:"last"`    // no page prolongs it
	CSRF    string `json:"csrf"`    // of forms, which are another session's after another login
	Who     string `json:"who"`     // a page has no form of another person's session
}

// Soon reports whether people are warned.
func (e ending) Soon() bool { return e.Seconds <= int(warnBefore.Seconds()) }

// warnBefore is how long before its end a session's pages say so.
const warnBefore = 5 * time.Minute

// ends is when a session ends unless it is used.
func (c *Console) ends(s *session) (e ending) {
	if s == nil {
		return e
	}
	s.mu.Lock()
	idle, last := s.seen.Add(sessionLife), s.began.Add(longestSession)
	s.mu.Unlock()
	e.Last, e.CSRF, e.Who = !idle.Before(last), s.CSRF, s.User+" of "+s.Tenant
	if e.Last {
		idle = last
	}
	e.Seconds = max(0, int(idle.Sub(c.Now()).Seconds()))
	return e
}

// sessionPath tells the script of a page when the session ends. A POST keeps the session.
const sessionPath = "/console/session"

func (c *Console) sessionNow(q *request) (any, error) {
	q.w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(q.w).Encode(c.ends(q.s)) // the browser may be gone
	return nil, errDone
}

// session returns the session of a request. It has ended if its key was revoked, its user is
// disabled, or its provider has ended it.
func (c *Console) session(w http.ResponseWriter, r *http.Request) (*session, error) {
	cookie, err := r.Cookie(cookieName)
	if err != nil {
		return nil, errNoSession
	}
	s, ok := c.find(cookie.Value)
	if !ok || c.Now().Sub(s.began) >= longestSession {
		return nil, errNoSession
	}
	var now keyInfo
	err = c.ask(r.Context(), s.credentials, http.MethodGet, "/v1/me", nil, &now)
	p := (*problem.Problem)(nil)
	if errors.As(err, &p) && (p.Code == intents.Unauthorized || p.Code == intents.RBACForbidden) || err == nil && (now.Tenant != s.Tenant || now.User != s.User) {
		c.sessions.Remove(s.id)
		return nil, errNoSession
	}
	if err == nil {
		s.mu.Lock()
		s.stops, s.position = now.Stops, now.Position
		s.mu.Unlock()
	}
	watches := r.Header.Get("Accept") == "text/event-stream" || r.URL.Path == sessionPath && r.Method == http.MethodGet
	if err == nil && !watches { // a page that stays open is not used
		c.prolong(w, s, cookie.Value)
	}
	return s, err
}

func (c *Console) cookie(value string, seconds int) *http.Cookie {
	return &http.Cookie{Name: cookieName, Value: value, Path: c.root + "/console", MaxAge: seconds, HttpOnly: true, Secure: strings.HasPrefix(c.PublicURL, "https://"), SameSite: http.SameSiteStrictMode} //nolint:gosec // G124: Secure is set where people come by TLS
}

// entrance is the login page.
type entrance struct {
	Next      string
	Providers []provider // at which people can sign in
	Problem   *problem.Problem
}

// next returns the target of a login, which is always within the console.
func next(path string) string {
	u, err := url.Parse(path)
	if err != nil || u.Host != "" || u.Scheme != "" || !strings.HasPrefix(u.Path, "/console/") || strings.Contains(path, "\\") || strings.HasPrefix(u.Path, "/console/log") {
		return "/console/now"
	}
	return u.RequestURI()
}

func (c *Console) toLogin(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet || !strings.Contains(r.Header.Get("Accept"), "text/html") {
		c.fail(w, r, nil, problem.New(intents.Unauthorized, "", "there is no session, or it is over: log in again"))
		return
	}
	http.Redirect(w, r, c.root+"/console/login?next="+url.QueryEscape(next(r.URL.RequestURI())), http.StatusSeeOther)
}

func (c *Console) showLogin(w http.ResponseWriter, r *http.Request) {
	c.render(w, r, http.StatusOK, "login", nil, entrance{Next: next(r.URL.Query().Get("next")), Providers: c.providers()})
}

// login opens a session for the owner of an API key. Wrong keys count against their address.
func (c *Console) login(w http.ResponseWriter, r *http.Request) {
	s := &session{credentials: credentials{key: strings.TrimSpace(r.PostFormValue("key")), user: strings.TrimSpace(r.PostFormValue("user")), address: r.RemoteAddr, entering: true, secure: r.TLS != nil}}
	to := next(r.PostFormValue("next"))
	c.enter(w, r, s, to, func() {
		http.Redirect(w, r, c.root+to, http.StatusSeeOther)
	})
}

// enter begins a session if the API takes its credentials, in place of the browser's last one, and
// goes on.
func (c *Console) enter(w http.ResponseWriter, r *http.Request, s *session, to string, then func()) {
	var found keyInfo
	if err := c.ask(r.Context(), s.credentials, http.MethodGet, "/v1/me", nil, &found); err != nil {
		p := problem.FromError(err)
		c.render(w, r, p.Status, "login", nil, entrance{to, c.providers(), p})
		return
	}
	if old, err := r.Cookie(cookieName); err == nil {
		if s, ok := c.find(old.Value); ok {
			c.sessions.Remove(s.id)
		}
	}
	s.Tenant, s.User, s.entering = found.Tenant, found.User, false
	http.SetCookie(w, c.cookie(c.begin(s), int(sessionLife.Seconds())))
	then()
}

func (c *Console) logout(q *request) (any, error) {
	c.sessions.Remove(q.s.id)
	http.SetCookie(q.w, c.cookie("", -1))
	http.Redirect(q.w, q.Request, q.c.root+"/console/login", http.StatusSeeOther)
	return nil, errDone
}
