package intents

import (
	"encoding/json"
	"errors"
	"strings"
	"time"
)

// Leeway on issue, expiry and begin_by; none on deadlines.
const Leeway = 5 * time.Second

// MaxGrantLife is the longest life of one grant; MaxReadGrantLife, of one for reading.
const (
	MaxGrantLife     = 15 * time.Minute
	MaxReadGrantLife = 5 * time.Minute
)

// maxUnix bounds times so that adding to them cannot overflow: the year 9999.
const maxUnix = 253402300799

// Grant names the user: the gateway issues it for one turn, or for a plan, run
// or schedule that continues without the user (For). Alone it permits nothing: an
// intent also needs a role key.
type Grant struct {
	// Members are in the order of RFC 8785, here and below, so that encoding
	// a grant gives its canonical bytes at once.
	Act      Act      `json:"act"`
	Audience string   `json:"aud"`           // log origin
	Expires  int64    `json:"exp"`           // Unix seconds
	For      string   `json:"for,omitempty"` // "plan:<plan_id>", "run:<run_id>"
	IssuedAt int64    `json:"iat"`           // Unix seconds
	Issuer   string   `json:"iss"`           // log origin
	ID       string   `json:"jti"`
	Roles    []string `json:"roles"`
	Session  string   `json:"session_id,omitempty"`
	Subject  string   `json:"sub"`
	Tenant   string   `json:"tenant"`
	Turn     string   `json:"turn_id,omitempty"`
	Use      string   `json:"use,omitempty"` // UseRead; empty: intents
}

// Act names the user's client and how it was authenticated.
type Act struct {
	AMR    []string `json:"amr"`
	Client string   `json:"client"`
}

// UseRead is the use of a grant that opens reads. No intent can be signed under it, and no intent's
// grant reads: those travel with intents, to executors and into bundles.
const UseRead = "read"

// Reads reports whether the grant opens reads.
func (g Grant) Reads() bool { return g.Use == UseRead }

// life is the longest life of such a grant.
func (g Grant) life() time.Duration {
	if g.Reads() {
		return MaxReadGrantLife
	}
	return MaxGrantLife
}

// Standing reports whether the grant is bound to named work and is valid for nothing else.
func (g Grant) Standing() bool { return g.For != "" }

// Serves reports whether the grant is good for work in a context: a turn's grant is for all of its
// turn, a standing one for the work that it names and that the context must name too.
func (g Grant) Serves(c Context) bool {
	switch {
	case !g.Standing():
		return true
	case c.PlanID != "" && g.For == "plan:"+c.PlanID:
		return true
	default:
		return c.RunID != "" && g.For == "run:"+c.RunID
	}
}

// IssueGrant signs a grant with the gateway's key.
func IssueGrant(key Signer, g Grant) (string, error) { return SignCompact(key, TypGrant, g) }

// OpenGrant verifies a grant for an audience at a time. A zero now leaves out
// expiry: accepted intents are judged as of their own position.
func OpenGrant(token, audience string, keys Keys, now time.Time) (Grant, error) {
	row, err := (*Grants)(nil).open(token, audience, keys, now, verifiedGrant{})
	if err != nil {
		return Grant{}, err
	}
	return *row.grant, nil
}

// open is OpenGrant that asks for what was verified before: row, or the remembered grants. The grant
// is shared: do not modify it.
func (m *Grants) open(token, audience string, keys Keys, now time.Time, row verifiedGrant) (verifiedGrant, error) {
	row, key, err := m.verified(token, keys, row)
	if err != nil {
		reason := "grant is not valid"
		if r := (*Refusal)(nil); errors.As(err, &r) {
			reason = "grant: " + r.Reason
		}
		return verifiedGrant{}, Refuse(GrantInvalid, "/actor/grant", reason)
	}
	g := row.grant
	switch {
	case key.Role != RoleGateway:
		return verifiedGrant{}, Refuse(GrantInvalid, "/actor/grant", "grant is not signed by a gateway")
	case g.Issuer != audience || g.Audience != audience:
		return verifiedGrant{}, Refuse(GrantInvalid, "/actor/grant", "grant is for another log")
	case g.Subject == "" || g.Tenant == "" || g.ID == "":
		return verifiedGrant{}, Refuse(GrantInvalid, "/actor/grant", "grant names no subject, tenant or id")
	case g.Use != "" && !g.Reads():
		return verifiedGrant{}, Refuse(GrantInvalid, "/actor/grant", "grant has an unknown use")
	case g.IssuedAt < 0 || g.IssuedAt > maxUnix || g.Expires <= g.IssuedAt || g.Expires > g.IssuedAt+int64(g.life()/time.Second):
		return verifiedGrant{}, Refuse(GrantInvalid, "/actor/grant", "grant lives longer than 15 minutes, or one for reading than 5")
	}
	if !now.IsZero() {
		if !key.NotAfter.IsZero() && now.After(key.NotAfter) {
			return verifiedGrant{}, Refuse(GrantInvalid, "/actor/grant", "the gateway's key is past its not_after")
		}
		if now.After(time.Unix(g.Expires, 0).Add(Leeway)) {
			return verifiedGrant{}, Refuse(GrantInvalid, "/actor/grant", "grant has expired")
		}
		if now.Before(time.Unix(g.IssuedAt, 0).Add(-Leeway)) {
			return verifiedGrant{}, Refuse(GrantInvalid, "/actor/grant", "grant is not valid yet")
		}
	}
	return row, nil
}

// SignerOf is the kid that the header of a compact JWS names; empty where it
// cannot be read. Nothing is verified.
func SignerOf(token string) string {
	encoded, _, _ := strings.Cut(token, ".")
	raw, err := b64.DecodeString(encoded)
	if err != nil {
		return ""
	}
	var h struct {
		KID string `json:"kid"`
	}
	if json.Unmarshal(raw, &h) != nil {
		return ""
	}
	return h.KID
}

// clientKey begins the act.client of a grant whose user came with an API key.
const clientKey = "apikey:"

// clientToken begins the act.client of a grant whose user came with an access token of an OpenID
// provider. No id of an API key begins so.
const clientToken = "oidc:"

// CallerByToken identifies a caller by the issuer and the subject of its access token. It is the
// act.client, too.
func CallerByToken(issuer, subject string) string {
	return clientToken + Digest([]byte(issuer + "\n" + subject))[len("sha256:"):][:32]
}

// IsCallerByToken reports whether a caller is a CallerByToken, and not the id of an API key.
func IsCallerByToken(caller string) bool { return strings.HasPrefix(caller, clientToken) }

// ClientOf is the act.client of grants for a caller: the id of its API key, or its CallerByToken.
func ClientOf(caller string) string {
	if IsCallerByToken(caller) {
		return caller
	}
	return clientKey + caller
}

// CallerOf is the caller in an act.client; empty if it names none.
func CallerOf(client string) string {
	if IsCallerByToken(client) {
		return client
	}
	return KeyOfClient(client)
}

// KeyOfClient is the API key's id in an act.client; empty if it names none.
func KeyOfClient(client string) string {
	id, _ := strings.CutPrefix(client, clientKey)
	if id == client {
		return ""
	}
	return id
}
