// Package oauthtest has an authorization server, and an MCP server that it protects.
package oauthtest

import (
	"cmp"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync"
	"testing"
	"time"
)

// Issuer is an authorization server (OAuth 2.1, RFC 7009, 7591, 8414, 8628, 8693, 9068, 9207), and an
// OpenID provider for clients that ask for the scope openid. Whoever comes to it is logged in
// as Account.
type Issuer struct {
	*httptest.Server

	mu      sync.Mutex
	account string
	names   string // that it gives itself in answers
	life    time.Duration
	groups  []string              // of everybody, in access tokens
	codes   map[string]url.Values // of requests for a code
	tokens  map[string]grant      // in force
	issued  []string              // all secrets that were ever issued
	asked   map[string]int        // requests by grant type, and "revoke"
	revokes int                   // status of answers to the latter; 0: 200
	devices map[string]*device    // by code
	key     ed25519.PrivateKey    // of JWTs
	status  int                   // of every answer to a request for tokens, with body; 0: a true one
	body    string
}

// grant is what a token stands for.
type grant struct {
	Account, Resource string
	client, nonce     string
	refreshes, openid bool
	until             time.Time
}

// NewIssuer starts one that ends with the test.
func NewIssuer(t testing.TB) *Issuer {
	t.Helper()
	i := &Issuer{life: time.Hour, codes: map[string]url.Values{}, tokens: map[string]grant{}, asked: map[string]int{}}
	m := http.NewServeMux()
	m.HandleFunc("GET /.well-known/oauth-authorization-server", i.metadata)
	m.HandleFunc("POST /register", func(w http.ResponseWriter, r *http.Request) {
		var in map[string]any
		_ = json.NewDecoder(r.Body).Decode(&in)
		in["client_id"] = "client_" + rand.Text()
		answer(w, http.StatusCreated, in)
	})
	m.HandleFunc("GET /authorize", i.authorize)
	m.HandleFunc("POST /token", i.token)
	m.HandleFunc("POST /revoke", i.revoke)
	i.openID(m)
	i.Server = httptest.NewServer(m)
	i.names = i.URL
	t.Cleanup(func() {
		i.CloseClientConnections()
		i.Close()
	})
	return i
}

func answer(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v) // fails only with the connection
}

// Answers has every request for tokens answered so; status 0: truly.
func (i *Issuer) Answers(status int, body string) { i.set(func() { i.status, i.body = status, body }) }

// As sets who is logged in.
func (i *Issuer) As(account string) { i.set(func() { i.account = account }) }

// Names sets the issuer that its answers name.
func (i *Issuer) Names(issuer string) { i.set(func() { i.names = issuer }) }

// Life sets how long tokens live.
func (i *Issuer) Life(d time.Duration) { i.set(func() { i.life = d }) }

// Groups sets the groups that everybody is in, in tokens that are issued from now on.
func (i *Issuer) Groups(names ...string) { i.set(func() { i.groups = names }) }

// Revokes sets the answer to requests to revoke a token.
func (i *Issuer) Revokes(status int) { i.set(func() { i.revokes = status }) }

func (i *Issuer) revoke(w http.ResponseWriter, r *http.Request) {
	status := http.StatusOK
	i.set(func() {
		i.asked["revoke"]++
		status = cmp.Or(i.revokes, status)
	})
	if status == http.StatusOK {
		i.Revoke(r.FormValue("token"))
	}
	w.WriteHeader(status)
}

// Revoke ends a token, and with a refresh token all of its account.
func (i *Issuer) Revoke(token string) {
	i.set(func() {
		of := i.tokens[token]
		for t, g := range i.tokens {
			if t == token || of.refreshes && g.Account == of.Account {
				delete(i.tokens, t)
			}
		}
	})
}

// Expire ends all access tokens.
func (i *Issuer) Expire() {
	i.set(func() {
		for t, g := range i.tokens {
			if !g.refreshes {
				delete(i.tokens, t)
			}
		}
	})
}

// Issued are all secrets that it has ever issued.
func (i *Issuer) Issued() (out []string) {
	i.set(func() { out = append(out, i.issued...) })
	return out
}

// Asked is how often tokens were asked for by a grant type.
func (i *Issuer) Asked(grantType string) (n int) {
	i.set(func() { n = i.asked[grantType] })
	return n
}

// Account is who a token stands for at a resource; empty: nobody.
func (i *Issuer) Account(token, resource string) (account string) {
	i.set(func() {
		if g := i.tokens[token]; !g.refreshes && g.Resource == resource && time.Now().Before(g.until) {
			account = g.Account
		}
	})
	return account
}

func (i *Issuer) set(do func()) {
	i.mu.Lock()
	defer i.mu.Unlock()
	do()
}

func (i *Issuer) metadata(w http.ResponseWriter, _ *http.Request) {
	answer(w, http.StatusOK, map[string]any{
		"issuer": i.URL, "authorization_endpoint": i.URL + "/authorize", "token_endpoint": i.URL + "/token", "registration_endpoint": i.URL + "/register",
		"revocation_endpoint": i.URL + "/revoke", "code_challenge_methods_supported": []string{"S256"}, "response_types_supported": []string{"code"},
		"token_endpoint_auth_methods_supported": []string{"client_secret_post", "none"}, "authorization_response_iss_parameter_supported": true,
		"jwks_uri": i.URL + "/jwks", "device_authorization_endpoint": i.URL + "/device", "id_token_signing_alg_values_supported": []string{"EdDSA"},
	})
}

func (i *Issuer) authorize(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	to, err := url.Parse(q.Get("redirect_uri"))
	if err != nil || q.Get("code_challenge_method") != "S256" || q.Get("state") == "" || q.Get("response_type") != "code" {
		http.Error(w, "bad request", http.StatusBadRequest)
		return
	}
	code := "code_" + rand.Text()
	back := to.Query()
	i.set(func() {
		q.Set("account", i.account)
		i.codes[code] = q
		i.issued = append(i.issued, code)
		back.Set("iss", i.names)
	})
	back.Set("code", code)
	back.Set("state", q.Get("state"))
	to.RawQuery = back.Encode()
	http.Redirect(w, r, to.String(), http.StatusFound) //nolint:gosec // G710: a test's own
}

func (i *Issuer) token(w http.ResponseWriter, r *http.Request) {
	i.mu.Lock()
	defer i.mu.Unlock()
	kind := r.FormValue("grant_type")
	i.asked[kind]++
	if i.status != 0 {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(i.status)
		_, _ = w.Write([]byte(i.body)) // fails only with the connection
		return
	}
	g, again := grant{Resource: r.FormValue("resource")}, true
	switch kind {
	case "authorization_code":
		q, ok := i.codes[r.FormValue("code")]
		delete(i.codes, r.FormValue("code"))
		sum := sha256.Sum256([]byte(r.FormValue("code_verifier")))
		if !ok || base64.RawURLEncoding.EncodeToString(sum[:]) != q.Get("code_challenge") || r.FormValue("redirect_uri") != q.Get("redirect_uri") || r.FormValue("client_id") != q.Get("client_id") {
			answer(w, http.StatusBadRequest, map[string]string{"error": "invalid_grant"})
			return
		}
		g.Account, g.client, g.nonce, g.openid = q.Get("account"), q.Get("client_id"), q.Get("nonce"), isOpenID(q.Get("scope"))
	case "refresh_token":
		old, ok := i.tokens[r.FormValue("refresh_token")]
		delete(i.tokens, r.FormValue("refresh_token")) // each is good once
		if !ok || !old.refreshes {
			answer(w, http.StatusBadRequest, map[string]string{"error": "invalid_grant"})
			return
		}
		g.Account, g.client, g.openid = old.Account, old.client, old.openid
	case "urn:ietf:params:oauth:grant-type:device_code":
		d := i.devices[r.FormValue("device_code")]
		if d == nil || !d.agreed {
			answer(w, http.StatusBadRequest, map[string]string{"error": map[bool]string{true: "invalid_grant", false: "authorization_pending"}[d == nil]})
			return
		}
		delete(i.devices, r.FormValue("device_code"))
		g = d.grant
	case "client_credentials":
		if r.FormValue("client_secret") != "hush-hush" {
			answer(w, http.StatusUnauthorized, map[string]string{"error": "invalid_client"})
			return
		}
		g.Account, again = r.FormValue("client_id"), false
	case "urn:ietf:params:oauth:grant-type:token-exchange":
		g.Account, again = i.tokens[r.FormValue("subject_token")].Account+" exchanged", false
	default:
		answer(w, http.StatusBadRequest, map[string]string{"error": "unsupported_grant_type"})
		return
	}
	g.until = time.Now().Add(i.life)
	access := "at_" + rand.Text()
	if g.openid {
		access = i.sign("at+jwt", map[string]any{"sub": g.Account, "aud": g.Resource, "client_id": g.client, "groups": i.groups, "exp": g.until.Unix(), "jti": rand.Text()})
	}
	i.tokens[access] = g
	i.issued = append(i.issued, access)
	out := map[string]any{"access_token": access, "token_type": "Bearer", "expires_in": int(i.life.Seconds()), "issued_token_type": "urn:ietf:params:oauth:token-type:access_token"} //nolint:gosec // G101: made up
	if g.openid {
		out["id_token"] = i.sign("JWT", map[string]any{"sub": g.Account, "aud": g.client, "nonce": g.nonce, "exp": g.until.Unix()})
	}
	if again {
		refresh := "rt_" + rand.Text()
		i.tokens[refresh] = grant{Account: g.Account, client: g.client, openid: g.openid, refreshes: true}
		i.issued = append(i.issued, refresh)
		out["refresh_token"] = refresh
	}
	answer(w, http.StatusOK, out)
}
