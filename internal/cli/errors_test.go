package cli

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
)

// TestAbsentFiles: what is not there is named, with the place that it was looked for in.
func TestAbsentFiles(t *testing.T) {
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for _, args := range []string{
		"intent lint none.json", "intent submit none.json", "registry check none.json", "policy check none.json",
		"policy test none.json", "intent receipt verify none.json --keys k", "audit verify none.json", "admin sandbox run none.json", "admin keys put none.json", "up --config none.json",
		"kb add none.json --url http://127.0.0.1:1 --key k",
	} {
		got := call{args: strings.Fields(args)}.run(t.Context())
		if got.code != ExitMalformed || got.out != "" || !strings.Contains(got.err, "none.json does not exist in "+here) || strings.Contains(got.err, "no such file") {
			t.Errorf("%s: %+v", args, got)
		}
	}
	if got := (call{args: []string{"user", "list", "--data", "/nowhere/at-all"}}).run(t.Context()); !strings.HasPrefix(got.err, "writ: no data directory: /nowhere/at-all does not exist. Name the one") {
		t.Errorf("%+v", got)
	}
}

// TestKeyNotKnown: whoever is refused for the API key reads where it comes from, and what to type.
func TestKeyNotKnown(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusUnauthorized)
		_, _ = io.WriteString(w, `{"code":"UNAUTHORIZED","detail":"the API key is not known","hint":"send X-Api-Key"}`)
	}))
	t.Cleanup(s.Close)
	for _, args := range []string{"plan list", "workflow list", "run x", "approvals show 2eb1cc", "plan logs plan_000mx0zw1j647tf2kobh4agiwf"} {
		got := call{args: append(strings.Fields(args), "--url", s.URL), env: map[string]string{"WRIT_API_KEY": "old"}}.run(t.Context())
		if want := "writ: UNAUTHORIZED: the API key is not known; the key comes from WRIT_API_KEY: give another with --key or WRIT_API_KEY; an operator makes one: writ apikey create ID --user USER\n"; got.code != ExitNo || got.err != want {
			t.Errorf("%s: %+v", args, got)
		}
	}
}

// TestUsageNamesHelp: an impossible value names the help of its command, whoever finds it.
func TestUsageNamesHelp(t *testing.T) {
	for args, says := range map[string]string{
		"registry eval": "see: writ registry eval --help\n", "admin keys add --subject a --tenant b": "see: writ admin keys add --help\n", "intent resolve sha256:x maybe": "see: writ intent resolve --help\n",
		"workflow patch": "writ: missing: RUN_ID FILE\nfor example: writ workflow patch plan_", "admin keys init extra": `writ: "extra": it takes no argument`,
		"admin keys add": "writ: missing: --subject: user id of the operator in the tenant; --tenant: tenant of the operator\nfor example: writ admin keys add ",
	} {
		got := call{args: strings.Fields(args)}.run(t.Context())
		if got.code != ExitUsage || !strings.Contains(got.err, says) || strings.Count(got.err, "--help") != 1 {
			t.Errorf("%s: %+v", args, got)
		}
	}
}

// TestNoAnswerAtAll: where writ does not answer, nobody is told that a whole id would do.
func TestNoAnswerAtAll(t *testing.T) {
	got := call{args: []string{"approvals", "approve", "2eb1cc", "--url", "http://127.0.0.1:1", "--key", "k"}}.run(t.Context())
	if got.code != ExitNo || strings.Contains(got.err, "the whole id works") || !strings.Contains(got.err, "no answer from http://127.0.0.1:1") {
		t.Errorf("%+v", got)
	}
}
