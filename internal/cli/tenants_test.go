package cli

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"aob.dev/writ/intents"
)

// operatorsRouter answers an operator of system and records the last intent.
func operatorsRouter(t *testing.T, answer string) (url, key string, last func() (typ string, args json.RawMessage)) {
	t.Helper()
	s, err := intents.GenerateSigner(intents.RoleOperator)
	if err != nil {
		t.Fatal(err)
	}
	key = filepath.Join(t.TempDir(), "operator.pem")
	if err := intents.WriteKey(key, s); err != nil {
		t.Fatal(err)
	}
	known := s.VerificationKey()
	known.Subject, known.Tenant = "local", "system"
	set := intents.JWKS{Origin: origin, Version: 1, Keys: []intents.JWK{known.ToJWK()}}
	var mu sync.Mutex // guards intent
	var intent *intents.Envelope
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/.well-known/jwks.json" {
			_ = json.NewEncoder(w).Encode(set)
			return
		}
		raw, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		u, err := intents.Parse(raw)
		if err != nil {
			t.Errorf("%v: %s", err, raw)
			return
		}
		mu.Lock()
		defer mu.Unlock()
		keys := intents.KeysFunc(func(string) (intents.Key, error) { return known, nil })
		if intent, err = u.Verify(intents.Verifier{Keys: keys, Origin: origin, Now: time.Now()}); err != nil {
			t.Errorf("%v: %s", err, raw)
		}
		_, _ = io.WriteString(w, answer)
	}))
	t.Cleanup(server.Close)
	return server.URL, key, func() (string, json.RawMessage) {
		t.Helper()
		mu.Lock()
		defer mu.Unlock()
		if intent == nil {
			t.Fatal("no intent came")
		}
		signed := intent
		intent = nil
		return signed.Type(), signed.Args()
	}
}

// Each command of an operator signs one intent with the command's arguments.
func TestOperatorIntents(t *testing.T) {
	url, key, last := operatorsRouter(t, doneAnswer)
	id := "sha256:" + strings.Repeat("0", 64)
	for command, want := range map[string][2]string{
		"tenant add acme":                                          {"admin.put", `{"new_tenant":{"id":"acme"}}`},
		`tenant data approval {"once":true}`:                       {"admin.put", `{"tenant":"default","data":{"key":"approval","value":{"once":true}}}`},
		"tenant role put reader --capability a:b --capability c:d": {"admin.put", `{"tenant":"default","role":{"role":"reader","capabilities":["a:b","c:d"]}}`},
		"tenant role put reader":                                   {"admin.put", `{"tenant":"default","role":{"role":"reader","capabilities":[]}}`},
		"user put ana --role user --tenant acme":                   {"admin.put", `{"tenant":"acme","user":{"user_id":"ana","roles":["user"]}}`},
		"user put ana --disabled":                                  {"admin.put", `{"tenant":"default","user":{"user_id":"ana","roles":[],"disabled":true}}`},
		"apikey revoke app --user ana --hash " + id:                {"admin.put", `{"tenant":"default","api_key":{"id":"app","hash":"` + id + `","user_id":"ana","max_roles":[],"revoked":true}}`},
		"skill approve feed --effect once --digest " + id:          {"skill.approve", `{"tenant":"default","skill":"feed","digest":"` + id + `","effect":"once"}`},
		"user revoke ana --before 2026-11-20T10:00:00.5Z":          {"grant.revoke", `{"tenant":"default","sub":"ana","before":"2026-11-20T10:00:00.500Z"}`},
		"intent resolve " + id + " failed --reason looked":         {"intent.resolve", `{"intent_id":"` + id + `","status":"failed","reason":"looked"}`},
		"intent erase " + id + " --position 5 --reason asked":      {"record.erase", `{"tenant":"default","intent_id":"` + id + `","position":5,"parts":["envelope","result"],"reason":"asked"}`},
		"intent resolve " + id + " done --reason looked":           {"intent.resolve", `{"intent_id":"` + id + `","status":"done","reason":"looked"}`},

		"intent erase " + id + " --position 5 --parts blobs,envelope --tenant acme --reason asked": {"record.erase", `{"tenant":"acme","intent_id":"` + id + `","position":5,"parts":["blobs","envelope"],"reason":"asked"}`},
	} {
		got := call{args: append(strings.Fields(command), "--url", url, "--signer", key)}.run(t.Context())
		if got.code != ExitOK || got.out != "sha256:1\n" || strings.HasPrefix(command, "intent ") != strings.Contains(got.err, id) || got.err == "" {
			t.Errorf("%s: exit %d, stdout %q, stderr %q", command, got.code, got.out, got.err)
			continue
		}
		typ, args := last()
		if typ != want[0] || cmp.Diff(parsed(t, want[1]), parsed(t, string(args))) != "" {
			t.Errorf("%s: %s %s, want %s %s", command, typ, args, want[0], want[1])
		}
		if got = (call{args: append(strings.Fields(command), "--url", url, "--signer", key, "--json")}).run(t.Context()); got.out != "{\n  \"intent_id\": \"sha256:1\",\n  \"position\": 7\n}\n" {
			t.Errorf("%s --json: %q", command, got.out)
		}
	}
}

// A new API key stays here: its hash is sent, with the most that it may give.
func TestAPIKeyIsNotSent(t *testing.T) {
	url, key, last := operatorsRouter(t, doneAnswer)
	args := strings.Fields("apikey create app --user ana --role user --role approver --may-assert-user --front-end --tool crm.list --tool bank.* --rename crm.list=tickets --group bank.*=money --tenant acme")
	got := call{args: append(args, "--url", url, "--signer", key)}.run(t.Context())
	made := strings.TrimSpace(got.out)
	typ, sent := last()
	want := `{"tenant":"acme","api_key":{"id":"app","hash":"` + intents.Digest([]byte(made)) + `","user_id":"ana","max_roles":["user","approver"],"may_assert_user":true,"front_end":true,"tools":["crm.list","bank.*"],"rename":{"crm.list":"tickets"},"group":{"bank.*":"money"}}}`
	if got.code != ExitOK || !strings.HasPrefix(made, "writ_") || typ != "admin.put" || cmp.Diff(parsed(t, want), parsed(t, string(sent))) != "" {
		t.Errorf("exit %d, %q: %s %s, want %s", got.code, got.out, typ, sent, want)
	}
}

// A grant is revoked as of now by default.
func TestGrantRevokeNow(t *testing.T) {
	url, key, last := operatorsRouter(t, doneAnswer)
	began := time.Now().Truncate(time.Millisecond)
	if got := (call{args: []string{"user", "revoke", "ana", "--url", url, "--signer", key}}).run(t.Context()); got.code != ExitOK {
		t.Fatalf("%+v", got)
	}
	_, args := last()
	var a struct{ Before time.Time }
	if err := json.Unmarshal(args, &a); err != nil || a.Before.Before(began) || a.Before.After(time.Now()) {
		t.Errorf("%s, %v", args, err)
	}
}

// What is refused, and what waits for people, is no success.
func TestOperatorRefused(t *testing.T) {
	for answer, says := range map[string]string{refusal: "POLICY_DENIED", heldAnswer: "waits for approval; nothing has changed", "<html>": "not an answer to an intent"} {
		url, key, _ := operatorsRouter(t, answer)
		got := call{args: []string{"tenant", "add", "acme", "--url", url, "--signer", key}}.run(t.Context())
		if got.code == ExitOK || got.out != "" || !strings.Contains(got.err, says) {
			t.Errorf("%s: %+v", says, got)
		}
	}
}

func parsed(t *testing.T, doc string) (v map[string]any) {
	t.Helper()
	if err := json.Unmarshal([]byte(doc), &v); err != nil {
		t.Fatalf("%v: %s", err, doc)
	}
	return v
}
