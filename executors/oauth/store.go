package oauth

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"golang.org/x/oauth2"

	"aob.dev/writ/executors"
	"aob.dev/writ/intents"
	"aob.dev/writ/storage"
)

// connection is a document of agent_connections: of one user and one server.
type connection struct {
	Tenant string `json:"tenant_id"`
	User   string `json:"user_id"`
	Server string `json:"server"`
	Issuer string `json:"issuer"`
	// Position of the skill.connect that wrote it last: a user.erase after it removes the connection, however
	// often its tokens were refreshed.
	Position int64 `json:"position"`
	// Refreshing is until when one process refreshes the tokens, and all others wait.
	Refreshing *time.Time `json:"refreshing,omitempty"`
	Sealed     struct {
		Data string `json:"data"`
	} `json:"sealed"`

	content `json:"-"`
	version int64
}

// content is the sealed part of a connection.
type content struct {
	Tokens  *tokens  `json:"tokens,omitempty"`  // nil: not connected yet
	Pending *pending `json:"pending,omitempty"` // what was begun and not ended
	Used    []used   `json:"used,omitempty"`    // links, until they lapse
}

// place is where tokens come from.
type place struct {
	Issuer     string   `json:"issuer"`
	Token      string   `json:"token_endpoint"`
	Revocation string   `json:"revocation_endpoint,omitempty"`
	Resource   string   `json:"resource,omitempty"`
	Scopes     []string `json:"scopes,omitempty"`
	Client     client   `json:"client"`
	Absent     bool     `json:"absent,omitempty"` // schedules may use them
}

// tokens of a user.
type tokens struct {
	place
	Access  string    `json:"access"`
	Refresh string    `json:"refresh,omitempty"`
	Expiry  time.Time `json:"expiry,omitzero"`
}

// pending is a connection that was begun.
type pending struct {
	place
	Nonce    string    `json:"nonce"` // of the link
	Verifier string    `json:"verifier"`
	Redirect string    `json:"redirect"`
	Named    bool      `json:"named,omitempty"` // the issuer names itself in its answers (RFC 9207)
	Until    time.Time `json:"until"`
}

type used struct {
	Nonce string    `json:"nonce"`
	Until time.Time `json:"until"`
}

// id: ids of users have no slash.
func id(user, server string) string { return user + "/" + server }

func (x *connection) about() []string { return []string{x.Tenant, x.User, x.Server, x.Issuer} }

// load reads the connection of a user; none: an empty one.
func (c *Connections) load(ctx context.Context, who intents.Principal, server string) (*connection, error) {
	x := &connection{Tenant: who.Tenant, User: who.UserID, Server: server, version: storage.NoPosition}
	doc, err := c.Documents.Get(ctx, who.Tenant, storage.IndexConnections, id(who.UserID, server))
	if errors.Is(err, storage.ErrNotFound) {
		return x, nil
	}
	if err != nil {
		return nil, err
	}
	x.version = doc.Position
	if err := json.Unmarshal(doc.Body, x); err != nil {
		return nil, err
	}
	if x.Tenant != who.Tenant || x.User != who.UserID || x.Server != server {
		return nil, storage.ErrNotFound
	}
	if c.tokens.Open(x.Sealed.Data, &x.content, x.about()...) != nil {
		x.content = content{} // sealed by another key, as after a restore without keys: the user connects again
	}
	return x, nil
}

// save writes a connection, unless another process has written it since it was loaded: storage.ErrStale.
func (c *Connections) save(ctx context.Context, x *connection, position int64) (err error) {
	if x.Issuer == "" || x.Tokens != nil {
		x.Issuer = x.issuer()
	}
	if x.Sealed.Data, err = c.tokens.Seal(x.content, x.about()...); err != nil {
		return err
	}
	x.Position = max(x.Position, position)
	doc, err := executors.Document(id(x.User, x.Server), max(position, x.version+1), x)
	if err != nil {
		return err
	}
	if err := c.Documents.Swap(ctx, x.Tenant, storage.IndexConnections, x.version, doc); err != nil {
		return err
	}
	x.version = doc.Position
	return nil
}

func (x *connection) issuer() string {
	if x.Tokens != nil {
		return x.Tokens.Issuer
	}
	return x.Pending.Issuer
}

// held is a token with its end; zero: none.
type held struct {
	token string
	until time.Time // zero: not known
}

// early is how long before its end a token is renewed.
const early = 30 * time.Second

// good reports whether the token may be sent: it is another one than spent, and does not end soon.
func (h held) good(now time.Time, spent string) bool {
	return h.token != "" && h.token != spent && (h.until.IsZero() || now.Add(early).Before(h.until))
}

// held is a new token, whose end is by the library's clock.
func (c *Connections) held(t *oauth2.Token) held {
	if t.Expiry.IsZero() {
		return held{token: t.AccessToken}
	}
	return held{t.AccessToken, c.Now().Add(time.Until(t.Expiry))}
}
