package oauthtest

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"strings"
	"time"
)

// device is a sign-in by the device flow (RFC 8628).
type device struct {
	grant
	user   string // code that a person enters
	agreed bool
}

// openID are the routes of an OpenID provider.
func (i *Issuer) openID(m *http.ServeMux) {
	_, i.key, _ = ed25519.GenerateKey(rand.Reader)
	i.devices = map[string]*device{}
	m.HandleFunc("GET /.well-known/openid-configuration", i.metadata)
	m.HandleFunc("GET /jwks", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, http.StatusOK, map[string]any{"keys": []any{map[string]string{"kty": "OKP", "crv": "Ed25519", "alg": "EdDSA", "kid": "one", "x": base64.RawURLEncoding.EncodeToString(i.key.Public().(ed25519.PublicKey))}}}) //nolint:forcetypeassert // it is
	})
	m.HandleFunc("POST /device", func(w http.ResponseWriter, r *http.Request) {
		d := &device{user: rand.Text()[:8], grant: grant{Resource: r.FormValue("resource"), client: r.FormValue("client_id"), openid: true}}
		code := "dc_" + rand.Text()
		i.set(func() {
			i.devices[code] = d
			i.issued = append(i.issued, code)
		})
		answer(w, http.StatusOK, map[string]any{"device_code": code, "user_code": d.user, "verification_uri": i.URL + "/enter", "expires_in": 600, "interval": 1})
	})
}

// Enter is somebody, logged in as Account, who enters the code of a device and agrees. It reports
// whether there is such a code.
func (i *Issuer) Enter(code string) (there bool) {
	i.set(func() {
		for _, d := range i.devices {
			if d.user == code {
				d.Account, d.agreed, there = i.account, true, true
			}
		}
	})
	return there
}

// isOpenID reports whether a request for a code asks for an ID token.
func isOpenID(scope string) bool { return strings.Contains(" "+scope+" ", " openid ") }

// sign makes a JWT of claims.
func (i *Issuer) sign(typ string, claims map[string]any) string {
	encode := func(v any) string {
		raw, _ := json.Marshal(v) // maps of texts and numbers
		return base64.RawURLEncoding.EncodeToString(raw)
	}
	claims["iss"], claims["iat"] = i.names, time.Now().Unix()
	text := encode(map[string]string{"alg": "EdDSA", "kid": "one", "typ": typ}) + "." + encode(claims)
	return text + "." + base64.RawURLEncoding.EncodeToString(ed25519.Sign(i.key, []byte(text)))
}
