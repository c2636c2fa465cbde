package cli

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"aob.dev/writ/intents"
	"aob.dev/writ/internal/datadir"
)

// Ids that a gateway of tests lists: two of each kind begin alike.
var (
	intentA = "sha256:2eb1cc1ff8a7" + strings.Repeat("a", 52)
	intentB = "sha256:2eb1cc1ff8b7" + strings.Repeat("b", 52)
	began   = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	planA   = intents.TimedID(intents.KindPlan, began, "aaaaaaaaaaaaaaa")
	planB   = intents.TimedID(intents.KindPlan, began, "abbbbbbbbbbbbbb")
	planC   = intents.TimedID(intents.KindPlan, began, "ac") // of another signer's making
)

// lister is a gateway whose lists have those ids on two pages. asked are the lists that were
// asked for, sent the other requests.
type lister struct {
	requests, sent []string
	body           string
}

func listGateway(t *testing.T) (string, *lister) {
	t.Helper()
	l := &lister{}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		q := r.URL.Query()
		second := q.Get("after")+q.Get("cursor") == "2"
		entry := func(first, other string) string {
			if second {
				first = other
			}
			return fmt.Sprintf(`{"intent_id":%q,"plan_id":%q,"type":"skill.call","task":"count","created_at":%q}`, first, first, began.Format(time.RFC3339))
		}
		name, entries := "", ""
		switch {
		case r.Method != http.MethodGet:
		case r.URL.Path == "/agent/approvals":
			name, entries = "approvals", entry(intentA, intentB)
		case r.URL.Path == "/agent/kb/documents":
			name, entries = "documents", strings.ReplaceAll(entry(intentA, intentB), "intent_id", "document_id")
		case r.URL.Path == "/v1/intents":
			name, entries = "intents", entry(intentA, intentB)
		case r.URL.Path == "/agent/plans", r.URL.Path == "/v1/runs":
			name, entries = "plans", entry(planA, planB)
			if second {
				entries += "," + entry("", planC)
			}
		}
		if name == "" {
			body, _ := io.ReadAll(r.Body)
			l.sent = append(l.sent, r.Method+" "+r.URL.Path)
			l.body += string(body)
			_, _ = w.Write([]byte(`{"run":{}}`))
			return
		}
		l.requests = append(l.requests, r.URL.Path)
		cursor := `"2"`
		if second {
			cursor = `""`
		}
		_, _ = fmt.Fprintf(w, `{%q:[%s],"cursor":%s}`, name, entries, cursor)
	}))
	t.Cleanup(s.Close)
	return s.URL, l
}

// TestPrefixes: what a command sends has the whole id, which it also tells; a whole id is not looked up.
func TestPrefixes(t *testing.T) {
	patch := file(t, "patch.json", "{}")
	for _, c := range []struct{ args, id, list, sends string }{
		{"approvals show ID", intentA, "/agent/approvals", "GET /agent/approvals/ID"},
		{"approvals approve ID", intentA, "/agent/approvals", "POST /agent/approvals/ID"},
		{"approvals edit ID --args " + patch, intentA, "/agent/approvals", "POST /agent/approvals/ID"},
		{"approvals reject ID --reason no", intentA, "/agent/approvals", "POST /agent/approvals/ID"},
		{"approvals request-changes ID --reason no", intentA, "/agent/approvals", "POST /agent/approvals/ID"},
		{"intent receipt get ID", intentA, "/v1/intents", "GET /v1/intents/ID/receipt"},
		{"plan show ID", planA, "/agent/plans", "GET /agent/plans/ID"},
		{"plan watch ID", planA, "/agent/plans", "GET /agent/plans/ID/events"},
		{"plan cancel ID", planA, "/agent/plans", "DELETE /agent/plans/ID"},
		{"workflow show ID", planA, "/v1/runs", "GET /v1/runs/ID"},
		{"workflow watch ID", planA, "/agent/plans", "GET /agent/plans/ID/events"},
		{"workflow cancel ID", planA, "/v1/runs", "DELETE /v1/runs/ID"},
		{"workflow patch ID " + patch, planA, "/v1/runs", "POST /v1/runs/ID/patch"},
		{"workflow replay ID --from n", planA, "/v1/runs", "POST /v1/runs/ID/replay"},
		{"plan logs ID", planA, "/agent/plans", "POST /v1/logs"},
		{"kb remove ID", intentA, "/agent/kb/documents", "DELETE /agent/kb/documents/ID"},
		{"skill cache clear workflow ID", planA, "/agent/plans", "POST /agent/cache/invalidate"},
	} {
		givens := []string{c.id, c.id[:18]}
		if c.id == intentA {
			givens = append(givens, c.id[7:19], c.id[7:], c.id[:18]+"…")
		}
		for _, given := range givens {
			url, l := listGateway(t)
			got := call{args: append(strings.Fields(strings.Replace(c.args, "ID", given, 1)), "--url", url, "--key", "k")}.run(t.Context())
			var asked []string
			if len(given) < 30 {
				asked = []string{c.list, c.list}
				if told := given + " is " + c.id + "\n"; !strings.HasPrefix(got.err, told) {
					t.Errorf("%s: %q does not begin with %q", c.args, got.err, told)
				}
			}
			if d := cmp.Diff(asked, l.requests); d != "" {
				t.Errorf("%s with %s: lists (-want +got):\n%s", c.args, given, d)
			}
			if len(l.sent) == 0 || l.sent[0] != strings.Replace(c.sends, "ID", c.id, 1) || !strings.Contains(c.sends, "ID") && !strings.Contains(l.body, c.id) {
				t.Errorf("%s with %s: %q, stderr %q", c.args, given, l.sent, got.err)
			}
		}
	}
}

// TestPrefixOfNoOne: where a prefix is of several ids, of none, or too short, nothing is sent.
func TestPrefixOfNoOne(t *testing.T) {
	for _, c := range []struct {
		args  string
		code  int
		says  []string
		lists int
	}{
		{"approvals approve 2eb1cc", ExitUsage, []string{"sha256:2eb1cc is not unique: 2 ids", "\n  " + intentA + "  skill.call\n  " + intentB + "  skill.call\n"}, 2},
		{"intent receipt get sha256:2eb1cc1ff8", ExitUsage, []string{intentA, intentB}, 2},
		{"plan cancel " + planA[:16], ExitUsage, []string{planA + "  count", planB, planC}, 2},
		{"approvals reject 2eb1cd --reason no", ExitNo, []string{"NOT_FOUND", "sha256:2eb1cd", "writ approvals list"}, 2},
		{"intent receipt get 2eb1cd", ExitNo, []string{"NOT_FOUND", "writ audit search"}, 2},
		{"workflow cancel plan_zzzzzz", ExitNo, []string{"NOT_FOUND", "writ workflow list"}, 1},
		{"plan show plan_nobody", ExitNo, []string{"NOT_FOUND", "writ plan list"}, 1},
		{"approvals approve 2eb1c", ExitUsage, []string{`"2eb1c" is no intent_id`, "at least 6"}, 0},
		{"approvals approve sha256:2eb1c…", ExitUsage, []string{"at least 6"}, 0},
		{"approvals approve sha256:2EB1CC1F", ExitUsage, []string{"at least 6"}, 0},
		{"approvals approve " + intentA + "a", ExitUsage, []string{"at least 6"}, 0},
		{"approvals approve " + planA, ExitUsage, []string{"no intent_id"}, 0},
		{"plan show plan_000mx", ExitUsage, []string{"at least 6"}, 0},
		{"plan show 000mx0zw1j647", ExitUsage, []string{"no plan or run id"}, 0},
		{"plan show " + intentA, ExitUsage, []string{"no plan or run id"}, 0},
	} {
		url, l := listGateway(t)
		got := call{args: append(strings.Fields(c.args), "--url", url, "--key", "k")}.run(t.Context())
		if got.code != c.code || len(l.requests) != c.lists || len(l.sent) != 0 || got.out != "" {
			t.Errorf("%s: exit %d, asked %v, sent %v, stderr %q", c.args, got.code, l.requests, l.sent, got.err)
		}
		for _, says := range c.says {
			if !strings.Contains(got.err, says) {
				t.Errorf("%s: %q is not in %q", c.args, says, got.err)
			}
		}
	}
}

// TestPrefixIsWhole: an id that other ids begin with is the one that is meant; one that a signer made
// shorter than writ's own is looked up, and found.
func TestPrefixIsWhole(t *testing.T) {
	url, l := listGateway(t)
	got := call{args: []string{"plan", "cancel", planC, "--url", url, "--key", "k"}}.run(t.Context())
	if got.code != ExitOK || got.out != planC+" cancelled\n" || cmp.Diff([]string{"DELETE /agent/plans/" + planC}, l.sent) != "" {
		t.Errorf("%+v, sent %v", got, l.sent)
	}
}

// TestPrefixInALongList: where the end of a list is not reached, no prefix in it is unique.
func TestPrefixInALongList(t *testing.T) {
	asked, sent := 0, 0
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/agent/approvals" {
			sent++
		}
		asked++
		_, _ = fmt.Fprintf(w, `{"approvals":[{"intent_id":%q}],"cursor":"more"}`, intentA)
	}))
	t.Cleanup(s.Close)
	got := call{args: []string{"approvals", "approve", intentA[:20], "--url", s.URL, "--key", "k"}}.run(t.Context())
	if got.code != ExitNo || sent != 0 || asked != mostIDPages || !strings.Contains(got.err, "the whole id works without") {
		t.Errorf("%+v after %d requests, %d sent", got, asked, sent)
	}
}

// TestPrefixUnlisted: where no list can be had, the whole id still does.
func TestPrefixUnlisted(t *testing.T) {
	none := filepath.Join(t.TempDir(), "none")
	for _, args := range []string{"intent resolve 2eb1cc done --reason seen", "intent erase 2eb1cc --reason asked"} {
		got := call{args: strings.Fields(args), env: map[string]string{"WRIT_DATA": none, "WRIT_URL": "http://127.0.0.1:1"}}.run(t.Context())
		if got.code != ExitMalformed || !strings.Contains(got.err, none) || !strings.Contains(got.err, "the whole id works without") {
			t.Errorf("%s: %+v", args, got)
		}
	}
}

// TestEveryIDTakesPrefixes: no command that takes an id is left out.
func TestEveryIDTakesPrefixes(t *testing.T) {
	data := t.TempDir()
	if err := errors.Join(os.Mkdir(datadir.Journal(data), 0o700), os.WriteFile(datadir.JournalFile(data), []byte("begun"), 0o600)); err != nil {
		t.Fatal(err)
	}
	takes := regexp.MustCompile(` (INTENT_ID|PLAN_ID|RUN_ID|DOCUMENT_ID|RUN|PLAN)\b`)
	needs := map[string]string{"FILE": "f", "done|failed": "done", "--from": "--from=n", "--reason": "--reason=r"}
	n := 0
	var walk func(path string, rows []row)
	walk = func(path string, rows []row) {
		for _, r := range rows {
			words := strings.Fields(path + r.use)
			if len(r.group) > 0 {
				walk(strings.Join(words, " ")+" ", r.group)
				continue
			}
			at := takes.FindStringIndex(path + r.use)
			if at == nil {
				continue
			}
			n++
			args := append(strings.Fields((path + r.use)[:at[0]]), "2eb1c")
			for _, w := range strings.Fields((path + r.use)[at[1]:]) {
				if needs[w] != "" && !(w == "FILE" && args[1] == "edit") {
					args = append(args, needs[w])
				}
			}
			got := call{args: args, env: map[string]string{"WRIT_DATA": data, "WRIT_URL": "http://127.0.0.1:1", "WRIT_API_KEY": "k"}}.run(t.Context())
			if got.code != ExitUsage || !strings.Contains(got.err, "at least 6") {
				t.Errorf("%v: %+v", args, got)
			}
		}
	}
	for _, s := range sections() {
		walk("", s.rows)
	}
	if n < 20 {
		t.Errorf("only %d commands take an id", n)
	}
}
