package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/cli"
	"aob.dev/writ/internal/datadir"
	"aob.dev/writ/internal/testing/oauthtest"
	"aob.dev/writ/storage"
	"aob.dev/writ/storage/sqlite"
	"aob.dev/writ/upkeep"
)

// readable checks that none of some secrets stands in a file of a directory.
func readable(t *testing.T, dir string, secrets []string) {
	t.Helper()
	files := 0
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		files++
		raw, err := os.ReadFile(path)
		for _, secret := range secrets {
			if bytes.Contains(raw, []byte(secret)) {
				t.Errorf("%s has %s...", path, secret[:6])
			}
		}
		return err
	})
	if err != nil || files < 5 || len(secrets) < 4 {
		t.Errorf("%d files, %d secrets, error = %v", files, len(secrets), err)
	}
}

// refresh is where a page sends the browser on to.
func (p page) refresh(t *testing.T) string {
	t.Helper()
	_, to, ok := strings.Cut(p.header.Get("Refresh"), "url=")
	if p.status != http.StatusOK || !ok {
		t.Fatalf("%s: HTTP %d sends nobody on:\n%s", p.path, p.status, p.text)
	}
	return to
}

// connects goes the way of a link in a browser, and gives the address that the authorization server sends it to.
func (b *browser) connects(link string, shown ...string) (back string) {
	b.t.Helper()
	u, err := url.Parse(link)
	if err != nil {
		b.t.Fatal(err)
	}
	p := b.open(u.Path)
	p.shows(b.t, shown...)
	to := b.send(u.Path, url.Values{"csrf": {p.csrf()}}).refresh(b.t)
	req, err := http.NewRequestWithContext(b.t.Context(), http.MethodGet, to, nil)
	if err != nil {
		b.t.Fatal(err)
	}
	resp, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		b.t.Fatal(err)
	}
	_ = resp.Body.Close()
	at, err := resp.Location()
	if err != nil || at.Path != catalog.ConnectReturn {
		b.t.Fatalf("HTTP %d %v: %v", resp.StatusCode, at, err)
	}
	return b.open(at.RequestURI()).refresh(b.t)
}

// TestConnections: two users connect in their browsers, and one server gets the calls of each under their own
// account: directly, and once another person has approved. A link or an answer of somebody else is good for nothing,
// no file has a token, and a disconnected user is asked again.
func TestConnections(t *testing.T) {
	t.Parallel()
	issuer := oauthtest.NewIssuer(t)
	server := oauthtest.NewServer(t, issuer)
	dir := t.TempDir()
	t.Cleanup(func() { readable(t, dir, issuer.Issued()) })
	s := start(t, setup{Dir: dir, Skills: []string{fmt.Sprintf("name=notes auth=user issuer=%s -- %s", issuer.URL, server.Resource())}})
	ana, bob, ben := s.as("ana"), s.as("bob"), s.addApprover("default", "ben")

	link := func(who person) string {
		var out struct{ URL string }
		if status, p := s.call(who, http.MethodPost, "/agent/connections", map[string]string{"server": "notes"}, &out); status != http.StatusOK {
			t.Fatalf("link: HTTP %d %+v", status, p)
		}
		return out.URL
	}
	if status, p := s.call(ana, http.MethodPost, "/agent/connections", map[string]string{"server": "nots"}, nil); status != http.StatusNotFound || p.Code != intents.NotFound {
		t.Errorf("no such server: HTTP %d %+v", status, p)
	}
	hers, his := s.at(ana), s.at(bob)
	sent := link(ana)
	at, _ := url.Parse(sent)
	if p := his.open(at.Path); p.status != http.StatusUnprocessableEntity || !strings.Contains(p.text, "for another user") {
		t.Errorf("a link sent to another user: HTTP %d\n%s", p.status, p.text)
	}
	issuer.As("ana@notes")
	back := hers.connects(sent, server.Resource(), issuer.URL, "notes", "ana of default")
	if p := his.open(back); p.status != http.StatusUnprocessableEntity || !strings.Contains(p.text, "belongs to another user") {
		t.Errorf("an answer sent to another user: HTTP %d\n%s", p.status, p.text)
	}
	hers.open(back).shows(t, "You are connected to notes")
	if p := hers.open(back); p.status != http.StatusUnprocessableEntity {
		t.Errorf("a code used again: HTTP %d\n%s", p.status, p.text)
	}

	session := func(who person) string {
		_, header, _ := s.knock(who, http.MethodPost, "/mcp", rpcOf(1, "initialize", map[string]any{
			"protocolVersion": "2025-06-18", "capabilities": map[string]any{"elicitation": map[string]any{"url": map[string]any{}}}, "clientInfo": map[string]string{"name": "t", "version": "1"},
		}), "Accept", "application/json, text/event-stream")
		return header.Get("Mcp-Session-Id")
	}
	call := func(who person, session, tool string) string {
		_, text := s.rpc(who, session, rpcOf(catalog.RandomKey(), "tools/call", map[string]any{"name": tool, "arguments": map[string]any{"echo": true}}))
		return text
	}
	of := session(ana)
	s.await("the tools are approved", func() bool { return strings.Contains(call(ana, of, "whoami"), "ana@notes by (secret)") })

	theirs := session(bob)
	refusal := call(bob, theirs, "whoami")
	var asked struct {
		Error struct {
			Code int
			Data struct{ Elicitations []struct{ Mode, URL string } }
		}
	}
	if _, body, ok := strings.Cut(refusal, "data: "); ok {
		refusal = body
	}
	if err := json.NewDecoder(strings.NewReader(refusal)).Decode(&asked); err != nil || asked.Error.Code != -32042 || asked.Error.Data.Elicitations[0].Mode != "url" {
		t.Fatalf("a call without a connection: %v: %s", err, refusal)
	}
	issuer.As("bob@notes")
	his.open(his.connects(asked.Error.Data.Elicitations[0].URL, issuer.URL)).shows(t, "You are connected to notes")
	if text := call(bob, theirs, "whoami"); !strings.Contains(text, "bob@notes by (secret)") {
		t.Errorf("bob is %s", text)
	}
	if text := call(ana, of, "whoami"); !strings.Contains(text, "ana@notes by (secret)") || server.Crossed() {
		t.Errorf("ana is %s", text)
	}

	if text := call(ana, of, "note"); !strings.Contains(text, `\"held\"`) {
		t.Fatalf("a call that acts does not wait: %s", text)
	}
	waiting := s.inbox(ben)
	if len(waiting) != 1 {
		t.Fatalf("%d calls wait", len(waiting))
	}
	if done, p := s.decide(ben, waiting[0].IntentID, catalog.DecisionApprove, "so be it"); p.Code != "" {
		t.Fatalf("%+v %+v", done, p)
	}
	var held intent
	s.await("the released call is carried out", func() bool {
		for _, o := range s.intents("") {
			if o.Type == "skill.call" && bytes.Contains(o.Args, []byte("notes.note")) && o.Outcome != nil {
				held = o
			}
		}
		return held.Outcome != nil
	})
	if !bytes.Contains(held.Outcome.Result, []byte("ana@notes by (secret)")) {
		t.Errorf("the released call: %s %s %s", held.Outcome.Code, held.Outcome.Reason, held.Outcome.Result)
	}

	if status, p := s.call(bob, http.MethodDelete, "/agent/connections/notes?user_id=ana", nil, nil); status != http.StatusForbidden {
		t.Errorf("bob ends the connection of ana: HTTP %d %+v", status, p)
	}
	var gone catalog.SkillDisconnectResult
	if status, p := s.call(ana, http.MethodDelete, "/agent/connections/notes", nil, &gone); status != http.StatusOK || !gone.Removed || !gone.Revoked {
		t.Errorf("disconnect: HTTP %d %+v %+v", status, p, gone)
	}
	if text := call(ana, of, "whoami"); !strings.Contains(text, "-32042") {
		t.Errorf("a disconnected user is %s", text)
	}
}

// TestConnectionsKept: a backup with its keys has the connections, of which nobody can read the tokens, and a
// restored writ calls with them. Once a user is erased, so are the user's connections.
func TestConnectionsKept(t *testing.T) {
	issuer := oauthtest.NewIssuer(t)
	server := oauthtest.NewServer(t, issuer)
	base := t.TempDir()
	dir, backup, restored := filepath.Join(base, "data"), filepath.Join(base, "backup"), filepath.Join(base, "restored")
	skill := []string{fmt.Sprintf("name=notes auth=user issuer=%s -- %s", issuer.URL, server.Resource())}
	whoami := func(s *system, who person) string {
		_, header, _ := s.knock(who, http.MethodPost, "/mcp", rpcOf(1, "initialize", map[string]any{
			"protocolVersion": "2025-06-18", "capabilities": map[string]any{}, "clientInfo": map[string]string{"name": "t", "version": "1"},
		}), "Accept", "application/json, text/event-stream")
		session := header.Get("Mcp-Session-Id")
		_, text := s.rpc(who, session, rpcOf(2, "tools/call", map[string]any{"name": "whoami", "arguments": map[string]any{}}))
		s.knock(who, http.MethodDelete, "/mcp", nil, "Mcp-Session-Id", session)
		return text
	}
	kept := func(dir string) (users []string) {
		docs, err := sqlite.OpenDocuments(t.Context(), datadir.DocumentsFile(dir), storage.NewCheck(storage.DefaultDimension), 0)
		if err != nil {
			t.Fatal(err)
		}
		defer docs.Close()
		page, err := docs.Search(t.Context(), "default", storage.IndexConnections, storage.Query{Sort: "user_id"})
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range page.Documents {
			user, err := storage.OwnerOf(storage.IndexConnections, d.Body)
			users = append(users, user)
			if err != nil {
				t.Error(err)
			}
		}
		return users
	}
	t.Run("before", func(t *testing.T) {
		s := start(t, setup{Dir: dir, Skills: skill})
		for _, user := range []string{"ana", "ben"} {
			s.addPerson("default", user, "user")
			var out struct{ URL string }
			if status, p := s.call(s.as(user), http.MethodPost, "/agent/connections", map[string]string{"server": "notes"}, &out); status != http.StatusOK {
				t.Fatalf("link: HTTP %d %+v", status, p)
			}
			issuer.As(user + "@notes")
			b := s.at(s.as(user))
			b.open(b.connects(out.URL)).shows(t, "You are connected to notes")
			s.await("the tools are approved", func() bool { return strings.Contains(whoami(s, s.as(user)), user+"@notes") })
		}
	})
	if _, err := upkeep.MakeBackup(t.Context(), dir, backup, true, time.Now()); err != nil {
		t.Fatal(err)
	}
	readable(t, backup, issuer.Issued())
	keys := filepath.Join(base, "keys")
	if _, err := upkeep.CopyKeys(t.Context(), dir, keys, time.Now()); err != nil {
		t.Fatal(err)
	}
	if _, err := upkeep.Restore(t.Context(), backup, restored, "", keys); err != nil {
		t.Fatal(err)
	}
	t.Run("restored", func(t *testing.T) {
		s := start(t, setup{Dir: restored, Skills: skill})
		for range 3 { // each refresh writes ana's connection
			issuer.Expire()
			if text := whoami(s, s.as("ana")); !strings.Contains(text, "ana@notes") {
				t.Fatalf("ana is %s", text)
			}
		}
		var out bytes.Buffer
		args := []string{"user", "erase", "ana", "--tenant", "default", "--reason", "asked for", "--url", s.url, "--signer", filepath.Join(restored, "keys", "operator.pem")}
		code := cli.Main(t.Context(), args, cli.IO{In: strings.NewReader(""), Out: &out, Err: &out, Env: func(string) string { return "" }})
		if code != 0 || !strings.Contains(out.String(), "- the connection to notes, whose authorization server has ended the tokens\n") {
			t.Errorf("exit code %d: %s", code, out.String())
		}
		for _, token := range issuer.Issued() {
			if issuer.Account(token, server.Resource()) == "ana@notes" {
				t.Error("a token of somebody who is erased is still good")
			}
		}
		if text := whoami(s, s.as("ben")); !strings.Contains(text, "ben@notes") {
			t.Errorf("ben is %s", text)
		}
	})
	if users := kept(restored); !slices.Equal(users, []string{"ben"}) {
		t.Errorf("connections of %v", users)
	}
}
