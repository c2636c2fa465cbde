// Package slack asks Slack for a user's name. Without an answer it returns quickly and does not
// retry at once: callers can do without one.
package slack

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/golang-lru/v2/expirable"

	"aob.dev/writ/internal/egress"
)

// API is where Slack's methods are.
const API = "https://slack.com/api"

// Bounds of the cache, and of an answer.
const (
	maxKept   = 10_000
	keptTime  = 15 * time.Minute
	maxAnswer = 256 << 10
	pause     = 30 * time.Second // after a failure that does not say how long
	maxPause  = time.Hour
	askTime   = 10 * time.Second
)

// profile of a user; empty: Slack does not know the user.
type profile struct{ name, email string }

// Client asks Slack.
type Client struct {
	api, token string
	http       *http.Client
	kept       *expirable.LRU[string, profile]
	now        func() time.Time

	mu    sync.Mutex
	until time.Time // no request before
	cause error
}

// New makes a client with a bot token. api is the URL of the methods.
func New(api, token string) *Client {
	return &Client{
		api: api, token: token, http: egress.Client(egress.Transport(api)),
		kept: expirable.NewLRU[string, profile](maxKept, nil, keptTime), now: time.Now,
	}
}

var memberID = regexp.MustCompile(`^[UW][A-Z0-9]{7,}$`)

// Profile of a user whose id is Slack's own or an e-mail address; of any other, nothing is
// known and nothing is asked.
func (c *Client) Profile(ctx context.Context, user string) (name, email string, err error) {
	method, query := "users.info", url.Values{"user": {user}}
	switch {
	case memberID.MatchString(user):
	case strings.Count(user, "@") == 1 && len(user) <= 320:
		method, query = "users.lookupByEmail", url.Values{"email": {user}}
	default:
		return "", "", nil
	}
	p, known := c.kept.Get(user)
	if !known {
		if p, err = c.ask(ctx, method, query); err != nil {
			return "", "", fmt.Errorf("slack: %s: %w", method, err)
		}
		c.kept.Add(user, p)
	}
	return p.name, p.email, nil
}

// server is how errors tell of Slack. The URL names the user.
var server = egress.Server{
	Name: "Slack", Unaffected: "users are shown by their ids", Address: "the proxy or firewall on the way", Secret: "slack_token (SLACK_BOT_TOKEN)", Quiet: true,
}

// answer of a method. Slack answers 200 with ok false where it refuses.
type answer struct {
	OK    bool   `json:"ok"`
	Error string `json:"error"`
	User  struct {
		Name     string `json:"name"`
		RealName string `json:"real_name"`
		Profile  struct {
			DisplayName string `json:"display_name"`
			RealName    string `json:"real_name"`
			Email       string `json:"email"`
		} `json:"profile"`
	} `json:"user"`
}

// notFound are Slack's words for a user who is not there, or whom the token may not see.
var notFound = map[string]bool{"user_not_found": true, "users_not_found": true, "user_not_visible": true}

var errorWord = regexp.MustCompile(`^[a-z_]{1,64}$`)

// ask a method once. After a failure nothing is asked for a while.
func (c *Client) ask(ctx context.Context, method string, query url.Values) (p profile, err error) {
	c.mu.Lock()
	wait, cause := c.until.Sub(c.now()), c.cause
	c.mu.Unlock()
	if wait > 0 {
		return p, fmt.Errorf("not asked for another %v: %w", wait.Round(time.Second), cause)
	}
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	a, after, err := c.exchange(ctx, method, query)
	switch {
	case err != nil:
	case notFound[a.Error]:
		return p, nil
	case !a.OK:
		word := a.Error
		if !errorWord.MatchString(word) {
			word = "an error without a name"
		}
		err = fmt.Errorf("Slack answers %s: look at slack_token (SLACK_BOT_TOKEN) and its scopes users:read and users:read.email", word) //nolint:staticcheck // a name
	default:
		u := a.User
		return profile{cmp.Or(u.Profile.DisplayName, u.Profile.RealName, u.RealName, u.Name), u.Profile.Email}, nil
	}
	if errors.Is(err, context.Canceled) { // the caller gave up, which is not Slack's fault
		return p, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.until, c.cause = c.now().Add(min(cmp.Or(after, pause), maxPause)), err
	return p, err
}

func (c *Client) exchange(ctx context.Context, method string, query url.Values) (a answer, after time.Duration, err error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, c.api+"/"+method+"?"+query.Encode(), nil)
	if err != nil {
		return a, 0, err
	}
	r.Header.Set("Authorization", "Bearer "+c.token)
	resp, err := c.http.Do(r)
	if err != nil {
		return a, 0, server.Fault(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return a, egress.RetryAfter(resp.Header, c.now()), server.Fault(egress.Status(resp.StatusCode))
	}
	raw, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return a, 0, err
	}
	if json.Unmarshal(raw, &a) != nil {
		return a, 0, fmt.Errorf("the answer is no JSON of at most %d bytes", maxAnswer)
	}
	return a, 0, nil
}
