package e2e

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/keydir"
)

// jws is a token in compact form.
var jws = regexp.MustCompile(`eyJ[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+`)

// granted is the answer of POST /v1/grants.
type granted struct {
	Grant, Origin string
	Reading       string `json:"read_grant"`
	Tenant        string `json:"tenant_id"`
	User          string `json:"user_id"`
	Turn          string `json:"turn_id"`
}

func (s *system) granted(who person) (g granted) {
	s.t.Helper()
	if status, p := s.call(who, http.MethodPost, "/v1/grants", nil, &g); g.Grant == "" || g.Reading == "" {
		s.t.Fatalf("no grants: HTTP %d %+v", status, p)
	}
	return g
}

// reads reports whether a read begins to answer; what it says may take as long as what is read.
func (s *system) reads(path string, headers ...string) bool {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), patience)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url+path, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		s.t.Fatalf("GET %s: %v", path, err)
	}
	defer resp.Body.Close()
	return resp.StatusCode < http.StatusMultipleChoices && !strings.HasPrefix(resp.Header.Get("Content-Type"), "text/html") // the login page
}

// TestRedTeamGrants: neither a grant of intents, wherever it was found, nor any other token of the
// record is the bearer of a read, and a grant for reading signs nothing.
func TestRedTeamGrants(t *testing.T) {
	t.Parallel()
	w := newRedWorld(t)
	ana, clara := w.addPerson("default", "ana", "user"), w.addPerson("default", "clara", "user", "auditor")
	w.addApprover("default", "ben")
	run, waiting := w.dropped(ana)
	g := w.granted(ana)
	// A route of the router takes either credential; one of the gateway takes API keys alone.
	if !w.reads("/v1/intents/"+waiting, "Authorization", "Bearer "+g.Reading) || !w.reads("/v1/runs/"+run, "X-Api-Key", ana.key) {
		t.Fatal("what is permitted does not read: the attempts show nothing")
	}
	paths := []string{
		"/v1/intents", "/v1/intents/" + waiting, "/v1/intents/" + waiting + "/receipt", "/v1/intents/" + waiting + "/proof", "/v1/runs", "/v1/runs/" + run, "/v1/runs/" + run + "/stream",
		"/v1/logs/" + run, "/v1/me", "/v1/approvals", "/v1/approvals/" + waiting, "/v1/policy", "/agent/plans", "/agent/plans/" + run, "/agent/plans/" + run + "/trace", "/agent/plans/" + run + "/events",
		"/agent/approvals", "/agent/schedules", "/agent/kb/documents", "/agent/cache", "/agent/memory/query?query_text=x", "/console/now", "/console/plans/" + run, "/console-api/intents/" + waiting, "/console-api/bundle", "/skills/", "/schemas/",
	}
	stolen := map[string]string{"a grant of intents": g.Grant}
	b := w.at(clara)
	bundle := b.send("/console/record/bundle", url.Values{"csrf": {b.open("/console/record").csrf()}}).text
	if !inCell() && !strings.Contains(bundle, waiting) { // in a cell the command line makes bundles
		t.Fatalf("no bundle: %.200s", bundle)
	}
	for _, found := range jws.FindAllString(bundle, -1) {
		stolen["a token of a bundle"] = found // the last one is the newest
	}
	for name, bearer := range stolen {
		for way, headers := range map[string][]string{
			"as bearer": {"Authorization", "Bearer " + bearer}, "as bearer in capitals": {"Authorization", "BEARER " + bearer}, "as key": {"X-Api-Key", bearer},
			"as bearer, as her": {"Authorization", "Bearer " + bearer, "X-User-Id", "ana"}, "as bearer and key": {"Authorization", "Bearer " + bearer, "X-Api-Key", bearer}, "as cookie": {"Cookie", "writ_console=" + bearer},
		} {
			for _, path := range paths {
				attack(t, attempt{name + " " + way + ": GET " + path, func() string {
					if w.reads(path, headers...) {
						return "it reads"
					}
					return ""
				}})
			}
		}
	}
	// The live grants of intents must not be in a bundle at all.
	attack(t, attempt{"a bundle with a live grant", func() string {
		for _, found := range jws.FindAllString(bundle, -1) {
			if found == g.Grant || w.reads("/v1/intents/"+waiting, "Authorization", "Bearer "+found) {
				return "it has one"
			}
		}
		return ""
	}})
	keys, err := keydir.Load(filepath.Join(w.dir, "keys"))
	if err != nil {
		t.Fatal(err)
	}
	if code := w.signUnder(keys[intents.RoleGateway], g, g.Grant); code != intents.OK {
		t.Fatalf("not even the grant of intents signs: %s", code)
	}
	other := w.granted(clara)
	head, rest, _ := strings.Cut(g.Grant, ".")
	claims, signature, _ := strings.Cut(rest, ".")
	_, others, _ := strings.Cut(other.Grant, ".")
	for name, grant := range map[string]string{
		"a grant for reading": g.Reading, "two in one": g.Reading + g.Grant, "two": g.Grant + " " + g.Reading, "none": "", "another's": other.Grant, "another's claims under her signature": head + "." + strings.Split(others, ".")[0] + "." + signature,
		"no signature": head + "." + claims + ".", "alg none": "eyJhbGciOiJub25lIn0." + claims + ".", "in capitals": strings.ToUpper(g.Grant), "of a receipt": stolen["a token of a bundle"], "padded": g.Grant + "=",
	} {
		attack(t, attempt{"to sign under: " + name, func() string {
			if code := w.signUnder(keys[intents.RoleGateway], g, grant); code == intents.OK {
				return "it is carried out"
			}
			return ""
		}})
	}
	once := catalog.RandomKey()
	_, first := w.signOnce(keys[intents.RoleGateway], g, g.Grant, once)
	var hers struct {
		IntentID string `json:"intent_id"`
	}
	if err := json.Unmarshal([]byte(first), &hers); err != nil || hers.IntentID == "" {
		t.Fatalf("%s: %v", first, err)
	}
	attack(t, attempt{"her idempotency key", func() string {
		if _, text := w.signOnce(keys[intents.RoleGateway], other, other.Grant, once); strings.Contains(text, hers.IntentID) {
			return text
		}
		return ""
	}})
	for _, role := range []intents.Role{intents.RoleOperator, intents.RoleRouter, intents.RoleLedger} {
		attack(t, attempt{"with the key of " + string(role) + " under her grant", func() string {
			if code := w.signUnder(keys[role], g, g.Grant); code == intents.OK {
				return "it is carried out"
			}
			return ""
		}})
	}
}

// signUnder has an artifact put under a grant.
func (w *redWorld) signUnder(key intents.Signer, g granted, grant string) intents.Code {
	w.t.Helper()
	code, _ := w.signOnce(key, g, grant, catalog.RandomKey())
	return code
}

// signOnce does so under an idempotency key, and gives the whole answer.
func (w *redWorld) signOnce(key intents.Signer, g granted, grant, once string) (intents.Code, string) {
	w.t.Helper()
	signed, _, err := intents.Sign(key, intents.Body{
		Version: intents.Version, Intent: intents.Spec{Type: "artifact.put", Args: json.RawMessage(`{"data":{"n":1}}`)},
		Actor: intents.Actor{UserID: g.User, Tenant: g.Tenant, Grant: grant}, Context: &intents.Context{TurnID: g.Turn},
		Constraints: intents.Constraints{IssuedAt: intents.FormatTime(time.Now()), TTLSec: 60, Audience: g.Origin, IdempotencyKey: once},
	})
	if err != nil {
		return intents.SchemaInvalid, "" // it cannot even be written
	}
	_, _, text := w.knock(person{}, http.MethodPost, "/v1/intents", signed)
	return w.submitted(signed), text
}

// submitted submits an envelope and gives the code of what became of it.
func (s *system) submitted(signed []byte) intents.Code {
	s.t.Helper()
	req, err := http.NewRequestWithContext(s.t.Context(), http.MethodPost, s.url+"/v1/intents", strings.NewReader(string(signed)))
	if err != nil {
		s.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		s.t.Fatal(err)
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	var a struct{ Code intents.Code }
	if err := json.Unmarshal(raw, &a); err != nil || a.Code == "" {
		s.t.Fatalf("HTTP %d %s", resp.StatusCode, raw)
	}
	return a.Code
}
