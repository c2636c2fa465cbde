package gateway

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"aob.dev/writ/intents"
	"aob.dev/writ/internal/openid"
	"aob.dev/writ/internal/problem"
)

// issuer is an OpenID provider.
type issuer struct {
	t   *testing.T
	url string
	key *ecdsa.PrivateKey
}

func newIssuer(t *testing.T) *issuer {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	i := &issuer{t: t, key: key}
	m := http.NewServeMux()
	m.HandleFunc("/.well-known/openid-configuration", func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(map[string]any{"issuer": i.url, "jwks_uri": i.url + "/jwks", "authorization_endpoint": i.url + "/auth", "token_endpoint": i.url + "/token", "id_token_signing_alg_values_supported": []string{"ES256", "HS256"}})
	})
	m.HandleFunc("/jwks", func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: key.Public(), KeyID: "one", Algorithm: "ES256"}}})
	})
	s := httptest.NewServer(m)
	t.Cleanup(s.Close)
	i.url = s.URL
	return i
}

// sign makes a token of this form; a nil claim is left out.
func (i *issuer) sign(alg jose.SignatureAlgorithm, key any, kid, typ string, changed map[string]any) string {
	i.t.Helper()
	claims := map[string]any{"iss": i.url, "sub": "s-1", "aud": "https://writ.example/gate/mcp", "exp": time.Now().Add(time.Hour).Unix(), "iat": time.Now().Unix(), "scope": "openid"}
	for name, v := range changed {
		claims[name] = v
		if v == nil {
			delete(claims, name)
		}
	}
	s, err := jose.NewSigner(jose.SigningKey{Algorithm: alg, Key: key}, (&jose.SignerOptions{}).WithType(jose.ContentType(typ)).WithHeader("kid", kid))
	if err != nil {
		i.t.Fatal(err)
	}
	signed, err := s.Sign(marshal(i.t, claims))
	if err != nil {
		i.t.Fatal(err)
	}
	token, err := signed.CompactSerialize()
	if err != nil {
		i.t.Fatal(err)
	}
	return token
}

func (i *issuer) token(typ string, changed map[string]any) string {
	i.t.Helper()
	return i.sign(jose.ES256, i.key, "one", typ, changed)
}

// TestBearer: an access token of a named provider, for this server, acts for the user that its issuer and
// subject are mapped to, with at most the mapped roles. Every other token is refused.
func TestBearer(t *testing.T) {
	i, other := newIssuer(t), newIssuer(t)
	people := openid.New([]openid.Provider{{Issuer: i.url, Users: []openid.User{
		{Subject: "s-1", Tenant: "default", User: "ana", Roles: []string{"user"}}, {Subject: "s-eve", Tenant: "default", User: "eve", Roles: []string{"user"}},
	}}}, time.Now, slog.New(slog.DiscardHandler))
	w := newWorld(t, nil, func(c *Config, _ *pace) { c.People, c.PublicURL = people, "https://writ.example/gate" })
	ask := func(token string, more http.Header) (answered, me, problem.Problem) {
		var raw json.RawMessage
		header := http.Header{"X-Api-Key": nil, "Authorization": {"Bearer " + token}}
		for name, v := range more {
			header[name] = v
		}
		resp := w.call(http.MethodGet, "/v1/me", "", header, &raw)
		var who me
		var p problem.Problem
		_, _ = json.Unmarshal(raw, &who), json.Unmarshal(raw, &p)
		return resp, who, p
	}
	for name, token := range map[string]string{
		"RFC 9068":      i.token("at+jwt", nil),
		"its long type": i.token("application/at+jwt", map[string]any{"scope": nil}),
		"Keycloak":      i.token("JWT", map[string]any{"typ": "Bearer", "azp": "cli"}),
		"Auth0":         i.token("JWT", map[string]any{"aud": []string{"https://writ.example/gate/mcp", i.url + "/userinfo"}}),
		"Entra":         i.token("JWT", map[string]any{"scope": nil, "scp": "use"}),
	} {
		if resp, who, p := ask(token, nil); who.User != "ana" || who.Tenant != "default" || len(who.Roles) != 1 || who.Roles[0] != "user" {
			t.Errorf("%s: %d %+v %+v", name, resp.StatusCode, who, p)
		}
	}
	valid := i.token("at+jwt", nil)
	hmacKey := []byte(strings.Repeat("k", 64))
	none := "eyJhbGciOiJub25lIiwidHlwIjoiYXQrand0In0." + strings.Split(valid, ".")[1] + "."
	for name, c := range map[string]struct {
		token string
		code  intents.Code
		says  string
	}{
		"expired":          {i.token("at+jwt", map[string]any{"exp": time.Now().Add(-time.Second).Unix()}), intents.Unauthorized, "expired"},
		"without expiry":   {i.token("at+jwt", map[string]any{"exp": nil}), intents.Unauthorized, "expired"},
		"another issuer":   {other.token("at+jwt", nil), intents.Unauthorized, "issuer"},
		"a claimed issuer": {other.token("at+jwt", map[string]any{"iss": i.url}), intents.Unauthorized, "signature"},
		"another audience": {i.token("at+jwt", map[string]any{"aud": "https://other.example/mcp"}), intents.Unauthorized, "audience"},
		"no audience":      {i.token("at+jwt", map[string]any{"aud": nil}), intents.Unauthorized, "audience"},
		"the site alone":   {i.token("at+jwt", map[string]any{"aud": "https://writ.example/gate"}), intents.Unauthorized, "audience"},
		"none":             {none, intents.Unauthorized, ""},
		"HS256":            {i.sign(jose.HS256, hmacKey, "one", "at+jwt", nil), intents.Unauthorized, "algorithm"},
		"another key":      {i.sign(jose.ES256, other.key, "one", "at+jwt", nil), intents.Unauthorized, "signature"},
		"an unknown kid":   {i.sign(jose.ES256, i.key, "two", "at+jwt", nil), intents.Unauthorized, "signature"},
		"an ID token":      {i.token("JWT", map[string]any{"nonce": "n", "at_hash": "h"}), intents.Unauthorized, "ID token"},
		"a bare ID token":  {i.token("", map[string]any{"scope": nil}), intents.Unauthorized, "ID token"},
		"Keycloak's":       {i.token("JWT", map[string]any{"typ": "ID"}), intents.Unauthorized, "ID token"},
		"a logout token":   {i.token("logout+jwt", nil), intents.Unauthorized, "type"},
		"mapped to nobody": {i.token("at+jwt", map[string]any{"sub": "s-2", "email": "ana@example.com"}), intents.RBACForbidden, "no user"},
		"a disabled user":  {i.token("at+jwt", map[string]any{"sub": "s-eve"}), intents.RBACForbidden, "disabled"},
		"cut off":          {valid[:len(valid)-4], intents.Unauthorized, ""},
		"no JSON":          {"a.b.c", intents.Unauthorized, "JWT"},
	} {
		resp, _, p := ask(c.token, nil)
		if p.Code != c.code || resp.StatusCode != c.code.Info().Status || !strings.Contains(p.Detail, c.says) {
			t.Errorf("%s: %d %s: %s", name, resp.StatusCode, p.Code, p.Detail)
		}
		if strings.Contains(p.Detail, c.token) {
			t.Errorf("%s: the answer repeats the token", name)
		}
	}
	if resp, _, p := ask(valid, http.Header{"X-User-Id": {"ben"}}); p.Code != intents.RBACForbidden {
		t.Errorf("for another user: %d %+v", resp.StatusCode, p)
	}
	if strings.Contains(w.log.String(), valid) {
		t.Error("the log has a token")
	}
}

// TestChallenge: who comes without a credential, or with a token that is not accepted, learns at /mcp where
// to get one. An API key that is wrong is told so, and starts no login.
func TestChallenge(t *testing.T) {
	i := newIssuer(t)
	people := openid.New([]openid.Provider{{Issuer: i.url, Users: []openid.User{{Subject: "s-1", Tenant: "default", User: "ana", Roles: []string{"user"}}}}}, time.Now, slog.New(slog.DiscardHandler))
	w := newWorld(t, nil, func(c *Config, _ *pace) { c.People, c.PublicURL = people, "https://writ.example/gate" })
	const metadata = `resource_metadata="https://writ.example/gate/.well-known/oauth-protected-resource/mcp"`
	for name, c := range map[string]struct {
		header    http.Header
		challenge string
	}{
		"nothing":       {http.Header{}, "Bearer " + metadata},
		"a bad token":   {http.Header{"Authorization": {"Bearer " + i.token("at+jwt", map[string]any{"aud": "x"})}}, `Bearer error="invalid_token", ` + metadata},
		"a bad key":     {http.Header{"Authorization": {"Bearer writ_wrong"}}, ""},
		"its own place": {http.Header{"X-Api-Key": {"writ_wrong"}}, ""},
		"both":          {http.Header{"X-Api-Key": {"writ_wrong"}, "Authorization": {"Bearer " + i.token("at+jwt", nil)}}, ""},
	} {
		header := http.Header{"X-Api-Key": nil, "Content-Type": {"application/json"}}
		for k, v := range c.header {
			header[k] = v
		}
		resp := w.do(t.Context(), http.MethodPost, routeMCP, `{"jsonrpc":"2.0","id":1,"method":"ping"}`, header)
		_ = resp.Body.Close()
		if got := resp.Header.Get("WWW-Authenticate"); resp.StatusCode != http.StatusUnauthorized || got != c.challenge {
			t.Errorf("%s: %d %q", name, resp.StatusCode, got)
		}
	}
	for _, path := range []string{"/register", "/authorize", "/token"} {
		if p := w.refused(http.MethodPost, path, "{}", nil, intents.NotFound, ""); !strings.Contains(p.Hint, "API key") {
			t.Errorf("%s: %+v", path, p)
		}
	}
	var about struct {
		Resource string
		Servers  []string `json:"authorization_servers"`
	}
	if w.call(http.MethodGet, "/.well-known/oauth-protected-resource/mcp", "", nil, &about); about.Resource != "https://writ.example/gate/mcp" || len(about.Servers) != 1 || about.Servers[0] != i.url {
		t.Errorf("%+v", about)
	}
}

// TestRolesByClaims: the claims of an access token give the roles that the settings name for them, beside
// those of the user. The grant has them, so that the record shows what the gateway vouched for.
func TestRolesByClaims(t *testing.T) {
	i := newIssuer(t)
	people := openid.New([]openid.Provider{{
		Issuer: i.url, Users: []openid.User{{Subject: "s-1", Tenant: "default", User: "ana", Roles: []string{"user"}}},
		Roles: []openid.ClaimRole{{Claim: "groups", Value: "approvers", Role: "approver"}, {Claim: "/realm~1a/roles", Value: "audit", Role: "auditor"}, {Claim: "https://acme/level", Value: "one", Role: "user"}},
	}}, time.Now, slog.New(slog.DiscardHandler))
	w := newWorld(t, nil, func(c *Config, _ *pace) { c.People, c.PublicURL = people, "https://writ.example/gate" })
	for name, c := range map[string]struct {
		claims map[string]any
		want   string
	}{
		"none":             {nil, "user"},
		"a list":           {map[string]any{"groups": []any{"staff", "approvers"}}, "user approver"},
		"a text":           {map[string]any{"groups": "approvers"}, "user approver"},
		"part of a text":   {map[string]any{"groups": "staff approvers"}, "user"},
		"another value":    {map[string]any{"groups": []any{"Approvers", 1, nil, map[string]any{"approvers": true}}}, "user"},
		"below":            {map[string]any{"realm/a": map[string]any{"roles": []any{"audit"}}}, "user auditor"},
		"not below":        {map[string]any{"realm/a": []any{"audit"}, "roles": []any{"audit"}}, "user"},
		"a role twice":     {map[string]any{"https://acme/level": "one"}, "user"},
		"of another claim": {map[string]any{"roles": []any{"approvers"}}, "user"},
	} {
		var who me
		resp := w.call(http.MethodGet, "/v1/me", "", http.Header{"X-Api-Key": nil, "Authorization": {"Bearer " + i.token("at+jwt", c.claims)}}, &who)
		if resp.StatusCode != http.StatusOK || strings.Join(who.Roles, " ") != c.want {
			t.Errorf("%s: %d %v, want %s", name, resp.StatusCode, who.Roles, c.want)
		}
	}
}
