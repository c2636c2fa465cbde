package e2e

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"aob.dev/writ/agentic/model/offline"
	"aob.dev/writ/internal/cli"
	"aob.dev/writ/internal/testing/oauthtest"
)

// signedIn is a writ whose people sign in at an OpenID provider.
type signedIn struct {
	*machine
	issuer *oauthtest.Issuer
	file   string // of the configuration
}

func startSignIn(t *testing.T) signedIn {
	t.Helper()
	issuer, at := oauthtest.NewIssuer(t), freeAddress(t)
	file := filepath.Join(t.TempDir(), "writ.yaml")
	text := fmt.Sprintf("public_url: http://%s\noidc:\n- issuer: %s\n  client_id: writ\n  users:\n  - {sub: s-ana, user: ana, roles: [user]}\n  - {sub: s-bob, user: bob, roles: [user]}\n  roles: [{claim: groups, value: auditors, role: auditor}]\n", at, issuer.URL)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	x := boot(t, offline.Model{}, serveShop(t).url, "--listen", at, "--config", file)
	x.await("a checkpoint, which the audit needs", func() bool {
		status, text := x.raw("/ledger/checkpoint", "")
		return status == http.StatusOK && !strings.Contains(text, "\n0\n")
	})
	return signedIn{x, issuer, file}
}

// browser of somebody who has no session.
func (s signedIn) browser() *browser {
	s.t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		s.t.Fatal(err)
	}
	b := &browser{s.t, s.system, &http.Client{Jar: jar}}
	s.t.Cleanup(b.web.CloseIdleConnections)
	return b
}

// agrees sends a browser to the provider, and returns where that sends it back to.
func (s signedIn) agrees(b *browser) *url.URL {
	s.t.Helper()
	b.open("/console/approvals").shows(s.t, "Sign in at "+strings.TrimPrefix(s.issuer.URL, "http://"))
	to := b.send("/console/signin", url.Values{"issuer": {s.issuer.URL}, "next": {"/console/approvals"}}).refresh(s.t)
	req, err := http.NewRequestWithContext(s.t.Context(), http.MethodGet, to, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	resp, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		s.t.Fatal(err)
	}
	_ = resp.Body.Close()
	at, err := resp.Location()
	if err != nil {
		s.t.Fatalf("HTTP %d: %v", resp.StatusCode, err)
	}
	return at
}

// TestSignIn: a person signs in to the console at the provider, as the user that the settings name, with
// the roles that they name for the claims of the token, and stays while the provider renews the token. An answer that another browser, sign-in, provider or
// person got opens nothing, and whom the provider removes is out.
func TestSignIn(t *testing.T) {
	t.Parallel()
	s := startSignIn(t)
	s.issuer.As("s-ana")
	s.issuer.Groups("staff", "auditors")
	s.issuer.Life(20 * time.Second) // shorter than what is renewed ahead: each request renews it
	hers := s.browser()
	back := s.agrees(hers)
	if p := s.browser().open(back.RequestURI()); p.status != http.StatusUnauthorized {
		t.Errorf("an answer in another browser: HTTP %d\n%s", p.status, p.text)
	}
	if to := hers.open(back.RequestURI()).refresh(t); to != "/console/approvals" {
		t.Errorf("goes on to %s", to)
	}
	hers.open("/console/approvals").shows(t, "ana")
	hers.open("/console/record").shows(t, "ana")
	hers.open("/console/you").shows(t, "auditor")
	s.issuer.Groups("staff")
	if p := hers.open("/console/you"); p.status != http.StatusOK || strings.Contains(p.text, "auditor") {
		t.Errorf("a group that she has left: HTTP %d\n%s", p.status, p.text)
	}
	if p := hers.open(back.RequestURI()); p.status != http.StatusUnauthorized {
		t.Errorf("an answer again: HTTP %d", p.status)
	}

	for name, change := range map[string]func(q url.Values){
		"another sign-in's":  func(q url.Values) { q.Set("state", "another") },
		"another provider's": func(q url.Values) { q.Set("iss", "https://other.example") },
		"another code":       func(q url.Values) { q.Set("code", "made-up") },
		"a refusal":          func(q url.Values) { q.Set("error", "access_denied") },
	} {
		b := s.browser()
		at := s.agrees(b)
		q := at.Query()
		change(q)
		if p := b.open(at.Path + "?" + q.Encode()); p.status != http.StatusUnauthorized || strings.Contains(p.text, "made-up") {
			t.Errorf("%s: HTTP %d\n%s", name, p.status, p.text)
		}
		if p := b.open("/console/approvals"); p.path != "/console/login" {
			t.Errorf("%s: is at %s", name, p.path)
		}
	}
	s.issuer.As("s-nobody")
	b := s.browser()
	if p := b.open(s.agrees(b).RequestURI()); p.status != http.StatusForbidden || !strings.Contains(p.text, "no user is mapped to you") {
		t.Errorf("somebody who is no user: HTTP %d\n%s", p.status, p.text)
	}

	renewed := s.issuer.Asked("refresh_token")
	hers.open("/console/plans").shows(t, "ana")
	if s.issuer.Asked("refresh_token") == renewed {
		t.Error("the token is not renewed")
	}
	for _, token := range s.issuer.Issued() {
		s.issuer.Revoke(token)
	}
	if p := hers.open("/console/plans"); p.path != "/console/login" {
		t.Errorf("whom the provider has removed is at %s", p.path)
	}
}

// TestSignInChanged: who is a user, and with which roles, changes with the file of the configuration, also for
// people who are signed in. A file with a fault changes nothing.
func TestSignInChanged(t *testing.T) {
	t.Parallel()
	s := startSignIn(t)
	s.issuer.As("s-ana")
	s.issuer.Groups("auditors")
	hers := s.browser()
	hers.open(s.agrees(hers).RequestURI())
	hers.open("/console/record").shows(t, "The whole record of")
	change := func(was, is string) {
		t.Helper()
		text, err := os.ReadFile(s.file)
		if err != nil || !strings.Contains(string(text), was) {
			t.Fatalf("%s, %v", text, err)
		}
		if err := os.WriteFile(s.file, []byte(strings.Replace(string(text), was, is, 1)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	page := func(what string, holds func() bool) { t.Helper(); s.awaitEvery(time.Second, what, holds) } // pages have a rate
	change("value: auditors", "value: others")
	page("a role that is taken away", func() bool { return !strings.Contains(hers.open("/console/record").text, "The whole record of") })
	s.issuer.As("s-carl")
	his := s.browser()
	if p := his.open(s.agrees(his).RequestURI()); p.status != http.StatusForbidden {
		t.Errorf("somebody who is no user: HTTP %d\n%s", p.status, p.text)
	}
	change("sub: s-ana, user: ana", "sub: s-carl, user: ana, roles: [user]}\n  - {sub: s-carl, user: carl")
	s.await("a fault that is logged", func() bool { return strings.Contains(s.stderr.String(), "needs a sub of its own") })
	hers.open("/console/approvals").shows(t, "ana")
	change("{sub: s-carl, user: ana, roles: [user]}\n  - ", "")
	page("somebody who is no user any more", func() bool { return hers.open("/console/approvals").path == "/console/login" })
	his = s.browser()
	his.open(s.agrees(his).RequestURI())
	his.open("/console/approvals").shows(t, "carl")
	change("  client_id: writ\n", "")
	page("no sign-in", func() bool { return !strings.Contains(s.browser().open("/console/login").text, "Sign in at") })
}

var asksToOpen = regexp.MustCompile(`^Open (http://\S+) and enter (\S+)\n`)

// TestLogin: a person signs in on a machine without a browser, and commands need no API key there.
func TestLogin(t *testing.T) {
	t.Parallel()
	s := startSignIn(t)
	s.issuer.As("s-ana")
	home := t.TempDir()
	env := func(name string) string { return map[string]string{"HOME": home, "WRIT_URL": s.url}[name] }
	var elsewhere bytes.Buffer
	other := strings.Replace(s.url, "127.0.0.1", "localhost", 1)
	if code := cli.Main(t.Context(), []string{"login", "--url", other}, cli.IO{In: strings.NewReader(""), Out: &elsewhere, Err: &elsewhere, Env: env}); code == 0 || !strings.Contains(elsewhere.String(), "says that it is") {
		t.Errorf("tokens for another address: exit code %d: %s", code, elsewhere.String())
	}
	said := &outputBuffer{}
	ended := make(chan int, 1)
	go func() {
		ended <- cli.Main(t.Context(), []string{"login"}, cli.IO{In: strings.NewReader(""), Out: &bytes.Buffer{}, Err: said, Env: env})
	}()
	s.await("a code", func() bool { return asksToOpen.MatchString(said.String()) })
	if m := asksToOpen.FindStringSubmatch(said.String()); m[1] != s.issuer.URL+"/enter" || !s.issuer.Enter(m[2]) {
		t.Fatalf("it says %q", said.String())
	}
	if code := <-ended; code != 0 {
		t.Fatalf("exit code %d: %s", code, said.String())
	}
	run := func(args ...string) (int, string) {
		var out bytes.Buffer
		code := cli.Main(t.Context(), args, cli.IO{In: strings.NewReader(""), Out: &out, Err: &out, Env: env})
		return code, out.String()
	}
	for _, args := range [][]string{{"approvals", "list"}, {"plan", "list"}} {
		if code, out := run(args...); code != 0 {
			t.Errorf("%v: exit code %d: %s", args, code, out)
		}
	}
	file := filepath.Join(home, ".config", "writ", "logins.json")
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	if code, out := run("login", "--forget"); code != 0 {
		t.Errorf("exit code %d: %s", code, out)
	}
	if code, out := run("plan", "list"); code == 0 || !strings.Contains(out, "no API key") {
		t.Errorf("after it is forgotten: exit code %d: %s", code, out)
	}
	for _, text := range []string{`{"` + s.url + `":null}`, `{"` + s.url + `":{"issuer":"x"}}`, "null"} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if code, out := run("plan", "list"); code == 0 || !strings.Contains(out, "no API key") {
			t.Errorf("%s: exit code %d: %s", text, code, out)
		}
	}
}
