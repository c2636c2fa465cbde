package skills

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"time"

	"aob.dev/writ/executors/mcp"
	"aob.dev/writ/intents"
	"aob.dev/writ/internal/ratelimit"
)

// CallerKeyLife is how long a caller's key serves the calls of its session, after it was last sent.
const CallerKeyLife = time.Hour

// callerKeys are the keys of callers for the servers that get them, by session, in memory alone.
type callerKeys = ratelimit.Recent[string]

func newCallerKeys(now func() time.Time) *callerKeys {
	return ratelimit.NewRecent[string](ratelimit.Shares{All: 10_000, Tenant: 5000, Key: 1000}, CallerKeyLife, now)
}

func callerOf(who intents.Principal) string {
	return who.Tenant + "\n" + who.UserID + "\n" + who.Session
}

// TakeKey keeps the key of a caller for the calls of the session, if some server gets such keys, and
// reports whether it is another one than before.
func (r *Registry) TakeKey(who intents.Principal, key string) (fresh bool) {
	if !slices.ContainsFunc(r.all(intents.Principal{}), func(s *server) bool { return s.byKey }) {
		return false
	}
	before, _ := r.keys.Get(callerOf(who))
	r.keys.Put(callerOf(who), who.Tenant, who.UserID, 1, key)
	return before != key
}

// AddForCallers is Add for a server that gets the caller's own key: callers with another one share
// no connection, session, listing or kept answer.
func (r *Registry) AddForCallers(name string, terms Terms, open func(ctx context.Context, key string) (Server, error)) error {
	return r.addForUsers(name, terms, func(ctx context.Context, _ intents.Principal, key string) (Server, error) {
		if key == "" {
			return nil, &mcp.Error{Kind: mcp.ErrUnconnected, Undelivered: true, Barred: true, Reason: "the skill server " + name + " takes the caller's own key, and there is none for this session any more: send a request in it with the header X-Skill-Api-Key"}
		}
		return open(ctx, key)
	}, true)
}

// ForwardKey sends a caller's key with each request.
func ForwardKey(next http.RoundTripper, key string) http.RoundTripper { return forward{next, key} }

type forward struct {
	next http.RoundTripper
	key  string
}

// RoundTrip implements http.RoundTripper.
func (f forward) RoundTrip(req *http.Request) (*http.Response, error) {
	req = req.Clone(req.Context())
	req.Header.Set("X-Api-Key", f.key)
	return f.next.RoundTrip(req)
}

// HideKey removes a caller's key from a text of its server.
func HideKey(key string) func(string) string {
	return func(text string) string { return strings.ReplaceAll(text, key, "(secret)") }
}
