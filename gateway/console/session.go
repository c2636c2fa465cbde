package console

import (
	"crypto/rand"
	"crypto/subtle"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"aob.dev/writ/intents"
	"aob.dev/writ/internal/problem"
	"aob.dev/writ/internal/ratelimit"
)

// cookieName of the session. Its value is a random number that only the console accepts, and
// browsers send it only there.
const cookieName = "writ_console"

const (
	sessionLife = time.Hour
	maxSessions = 10_000
)

// shares are of the sessions: of all, of a tenant's, and of those opened with one key.
var shares = ratelimit.Shares{All: maxSessions, Tenant: 2000, Key: 200}

// credentials are those of requests to the API.
type credentials struct {
	key, user, address string
	entering           bool // the API counts the request as one of that user
	secure             bool // people come by TLS to this process
}

// session of a person. It ends with its key: each page asks the API for the key's user.
type session struct {
	credentials
	id     string // digest of the cookie's value
	CSRF   string
	Tenant string
	User   string

	mu      sync.Mutex
	message string // for the next page, guarded by mu
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

// begin creates a session, which lasts for sessionLife and is in memory only: after a restart people
// log in again. token is for the cookie. At the limit the least recently used session ends.
func (c *Console) begin(s *session) (token string) {
	token, s.CSRF = rand.Text(), rand.Text()
	s.id = intents.Digest([]byte(token))
	m := s.metered()
	c.sessions.Put(s.id, m.Tenant, m.Key, 1, s)
	return token
}

func (c *Console) find(token string) (*session, bool) {
	return c.sessions.Get(intents.Digest([]byte(token)))
}

// metered names the count of a session's requests.
func (s *session) metered() ratelimit.Caller {
	return ratelimit.Caller{Tenant: s.Tenant, Key: intents.Digest([]byte(s.key)), Name: s.id}
}

var errNoSession = errors.New("console: no session")

// keyInfo is the API's information about a key.
type keyInfo struct {
	Tenant string `json:"tenant_id"`
	User   string `json:"user_id"`
}

// session returns the session of a request. It has ended if its key was revoked, or its user is
// disabled.
func (c *Console) session(r *http.Request) (*session, error) {
	cookie, err := r.Cookie(cookieName)
	if err != nil {
		return nil, errNoSession
	}
	s, ok := c.find(cookie.Value)
	if !ok {
		return nil, errNoSession
	}
	var now keyInfo
	err = c.ask(r.Context(), s.credentials, http.MethodGet, "/v1/me", nil, &now)
	p := (*problem.Problem)(nil)
	if errors.As(err, &p) && (p.Code == intents.Unauthorized || p.Code == intents.RBACForbidden) || err == nil && (now.Tenant != s.Tenant || now.User != s.User) {
		c.sessions.Remove(s.id)
		return nil, errNoSession
	}
	return s, err
}

func (c *Console) cookie(value string, seconds int) *http.Cookie {
	return &http.Cookie{Name: cookieName, Value: value, Path: c.root + "/console", MaxAge: seconds, HttpOnly: true, Secure: strings.HasPrefix(c.PublicURL, "https://"), SameSite: http.SameSiteStrictMode} //nolint:gosec // G124: Secure is set where people come by TLS
}

// entrance is the login page.
type entrance struct {
	Next    string
	Problem *problem.Problem
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
	c.render(w, r, http.StatusOK, "login", nil, entrance{Next: next(r.URL.Query().Get("next"))})
}

// login opens a session for the owner of an API key. Wrong keys count against their address.
func (c *Console) login(w http.ResponseWriter, r *http.Request) {
	s := &session{credentials: credentials{strings.TrimSpace(r.PostFormValue("key")), strings.TrimSpace(r.PostFormValue("user")), r.RemoteAddr, true, r.TLS != nil}}
	var found keyInfo
	to := next(r.PostFormValue("next"))
	if err := c.ask(r.Context(), s.credentials, http.MethodGet, "/v1/me", nil, &found); err != nil {
		p := problem.FromError(err)
		c.render(w, r, p.Status, "login", nil, entrance{to, p})
		return
	}
	if old, err := r.Cookie(cookieName); err == nil {
		if s, ok := c.find(old.Value); ok {
			c.sessions.Remove(s.id)
		}
	}
	s.Tenant, s.User, s.entering = found.Tenant, found.User, false
	http.SetCookie(w, c.cookie(c.begin(s), int(sessionLife.Seconds())))
	http.Redirect(w, r, c.root+to, http.StatusSeeOther) //nolint:gosec // G710: next lets no other address pass
}

func (c *Console) logout(q *request) (any, error) {
	c.sessions.Remove(q.s.id)
	http.SetCookie(q.w, c.cookie("", -1))
	http.Redirect(q.w, q.Request, q.c.root+"/console/login", http.StatusSeeOther)
	return nil, errDone
}
