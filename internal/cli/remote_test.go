package cli

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"aob.dev/writ/state/agents"
)

// emptyGateway has nothing to show. asked are its requests.
func emptyGateway(t *testing.T) (url string, asked *[]string) {
	t.Helper()
	asked = &[]string{}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		*asked = append(*asked, strings.TrimSpace(r.Method+" "+r.URL.String()+" "+string(body)))
		if r.URL.Path == "/schemas/" {
			_, _ = io.WriteString(w, "[]")
			return
		}
		_, _ = io.WriteString(w, `{"approvals":[],"plans":[],"documents":[],"hits":[],"messages":[]}`)
	}))
	t.Cleanup(s.Close)
	return s.URL, asked
}

// What lists of a running writ say, and those of a data directory, if they are empty. Some never are.
var (
	emptyLists = map[string]string{
		"approvals list":    "no intent waits",
		"plan list":         "writ run QUESTION",
		"workflow list":     "writ registry push DIR",
		"kb list":           "writ kb add FILE",
		"kb search harbour": "writ kb list",
	}
	emptyLocalLists = map[string]string{
		"user list --tenant default": "", "tenant role list --tenant system": "", "skill list": "writ up --skills", "admin executor list": "writ admin executor issue", "admin events list": "writ admin events issue",
		"apikey list --tenant system": "writ apikey create", "tenant list": "", "admin alerts list": "", "admin keys list": "", "registry list": "", "admin storage status": "",
	}
)

// TestEveryListIsTried: no command that lists or searches is left out.
func TestEveryListIsTried(t *testing.T) {
	tried := maps.Clone(emptyLists)
	maps.Copy(tried, emptyLocalLists)
	tried["audit search x"] = "script audit"
	leaves(tree(), func(c *cobra.Command) {
		path := strings.TrimPrefix(c.CommandPath(), "writ ")
		if (c.Name() == "list" || c.Name() == "search") && !slices.ContainsFunc(slices.Collect(maps.Keys(tried)), func(args string) bool { return strings.HasPrefix(args+" ", path+" ") }) {
			t.Errorf("%s is tried by no test of empty lists", c.CommandPath())
		}
	})
}

// TestEmptyLists: a list of nothing says so to people and names the next command; its JSON is a
// document with an empty array.
func TestEmptyLists(t *testing.T) {
	for args, says := range emptyLists {
		url, _ := emptyGateway(t)
		words := append(strings.Fields(args), "--url", url, "--key", "k")
		got := call{args: words}.run(t.Context())
		if got.code != ExitOK || got.out != "" || strings.Count(got.err, "\n") != 1 || !strings.Contains(got.err, says) {
			t.Errorf("%s: %+v", args, got)
		}
		got = call{args: append(words, "--json")}.run(t.Context())
		if got.code != ExitOK || got.err != "" || !strings.Contains(got.out, ": []") || strings.Contains(got.out, "null") {
			t.Errorf("%s --json: %+v", args, got)
		}
	}
}

// TestEmptyLocalLists: the same of lists of a data directory, in which no array is null.
func TestEmptyLocalLists(t *testing.T) {
	data := t.TempDir() + "/data"
	if r := start(t, data).stop(); r.code != ExitOK {
		t.Fatalf("%+v", r)
	}
	for args, says := range emptyLocalLists {
		got := call{args: append(strings.Fields(args), "--data", data)}.run(t.Context())
		if strings.HasPrefix(args, "registry") {
			got = call{args: strings.Fields(args)}.run(t.Context())
		}
		if got.code != ExitOK || !strings.Contains(got.err, says) || (says != "") != (got.out == "") {
			t.Errorf("%s: %+v", args, got)
		}
		if strings.HasPrefix(args, "registry") {
			continue
		}
		if got = (call{args: append(strings.Fields(args), "--data", data, "--json")}).run(t.Context()); got.code != ExitOK || strings.Contains(got.out, "null") {
			t.Errorf("%s --json: %+v", args, got)
		}
	}
}

// TestPages: flags of a list become parameters, and only those that were given.
func TestPages(t *testing.T) {
	for args, want := range map[string]string{
		"plan list": "GET /agent/plans", "plan list --status failed --limit 5 --after c": "GET /agent/plans?after=c&limit=5&status=failed",
		"approvals list --mine --type skill.call": "GET /agent/approvals?mine=true&type=skill.call",
		"kb list --limit 1":                       "GET /agent/kb/documents?limit=1",
		"skill cache stats":                       "GET /agent/cache",
		"skill cache clear skill crm.list":        `POST /agent/cache/invalidate {"scope":"skill","key":"crm.list"}`,
	} {
		url, asked := emptyGateway(t)
		if got := (call{args: append(strings.Fields(args), "--url", url, "--key", "k")}).run(t.Context()); got.code != ExitOK || len(*asked) != 1 || (*asked)[0] != want {
			t.Errorf("%s: %+v asked %q", args, got, *asked)
		}
	}
}

// TestOut: with --out the file gets what standard output would; where a command fails there is none.
func TestOut(t *testing.T) {
	url, _ := emptyGateway(t)
	to := file(t, "out", "old")
	got := call{args: []string{"skill", "cache", "stats", "--url", url, "--key", "k", "-o", to}}.run(t.Context())
	if text := content(t, to); got.code != ExitOK || got.out != "" || text != "0 answers  0 bytes\n" {
		t.Errorf("%+v, the file has %q", got, text)
	}
	got = call{args: []string{"plan", "list", "--url", url, "--key", "k", "--json", "--out", to}}.run(t.Context())
	if text := content(t, to); got.code != ExitOK || got.out != "" || !strings.Contains(text, `"plans": []`) {
		t.Errorf("%+v, the file has %q", got, text)
	}
	if got = (call{args: []string{"plan", "list", "--url", "http://127.0.0.1:1", "--key", "k", "-o", to + ".none"}}).run(t.Context()); got.code != ExitNo || content(t, to+".none") != "" {
		t.Errorf("%+v", got)
	}
}

// TestOutOfPrinters: the same of commands that print bit by bit.
func TestOutOfPrinters(t *testing.T) {
	to := file(t, "out", "old")
	for args, want := range map[string]string{"audit tail --data none": "old", "intent submit --url http://127.0.0.1:1": "old"} {
		got := call{args: append(strings.Fields(args), "-o", to)}.run(t.Context())
		if text := content(t, to); got.code == ExitOK || got.out != "" || text != want {
			t.Errorf("%s: %+v, the file has %q", args, got, text)
		}
	}
	url, _ := emptyGateway(t)
	got := call{args: []string{"workflow", "start", "x", "--json", "--url", url, "--key", "k", "-o", to}}.run(t.Context())
	if text := content(t, to); got.code != ExitOK || got.out != "" || !strings.Contains(text, `"intent_id"`) {
		t.Errorf("%+v, the file has %q", got, text)
	}
}

// TestOneMeaningOfFlags: what a flag is called says what it takes, in every command.
func TestOneMeaningOfFlags(t *testing.T) {
	leaves(tree(), func(c *cobra.Command) {
		if f := c.Flags().Lookup("key"); f != nil && !strings.HasPrefix(f.Usage, "API key") {
			t.Errorf("%s --key: %s", c.CommandPath(), f.Usage)
		}
		if f := c.Flags().Lookup("signer"); f != nil && !strings.Contains(f.Usage, "private key file") {
			t.Errorf("%s --signer: %s", c.CommandPath(), f.Usage)
		}
		if f := c.Flags().Lookup("out"); f != nil && (f.Shorthand != "o" || !strings.HasPrefix(f.Usage, "file for ")) {
			t.Errorf("%s --out: -%s %s", c.CommandPath(), f.Shorthand, f.Usage)
		}
	})
	got := call{args: []string{"user", "put", "ben", "--key", "k"}}.run(t.Context())
	if got.code != ExitUsage || !strings.Contains(got.err, "the file of a private key is --signer") {
		t.Errorf("%+v", got)
	}
}

// TestEveryNameIsCompleted: a shell completes each id and name of an agent, workflow or skill that a
// command takes first, and each agent that a flag takes.
func TestEveryNameIsCompleted(t *testing.T) {
	n := 0
	leaves(tree(), func(c *cobra.Command) {
		words := strings.Fields(c.Use)
		known := []string{"INTENT_ID", "PLAN_ID", "RUN_ID", "DOCUMENT_ID", "WORKFLOW_ID", "CONDITION"}
		if c.Parent().Name() == "skill" || c.CommandPath() == "writ registry show" {
			known = append(known, "NAME")
		}
		if len(words) > 1 && slices.Contains(known, words[1]) {
			n++
			if c.ValidArgsFunction == nil && c.ValidArgs == nil {
				t.Errorf("%s completes no %s", c.CommandPath(), words[1])
			}
		}
		if c.Flags().Lookup("agent") != nil {
			n++
			if _, there := c.GetFlagCompletionFunc("agent"); !there {
				t.Errorf("%s completes no --agent", c.CommandPath())
			}
		}
	})
	if n < 25 {
		t.Errorf("only %d of them", n)
	}
}

// TestCompletion: a shell gets the ids and names that begin so, from the running writ; what
// cannot be looked up is silently not there.
func TestCompletion(t *testing.T) {
	list, _ := listGateway(t)
	named := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = fmt.Fprintf(w, `[{"name":"clerk","kind":%q},{"name":"clever","kind":"x"},{"name":"planner","kind":"x"}]`, r.URL.Query().Get("kind"))
	}))
	t.Cleanup(named.Close)
	hung := make(chan struct{})
	slow := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-hung:
		case <-r.Context().Done():
		}
	}))
	t.Cleanup(slow.Close)
	t.Cleanup(func() { close(hung) })
	for _, c := range []struct {
		url, args, begun string
		want             []string
	}{
		{list, "plan show", "plan_", []string{planA + "\tcount", planB + "\tcount", planC + "\tcount"}},
		{list, "plan show", planA[:30], []string{planA + "\tcount"}},
		{list, "approvals approve", "sha256:2eb1cc1ff8a", []string{intentA + "\tskill.call"}},
		{list, "approvals approve " + intentA, "sha", nil},
		{list, "plan show", "plan_zz", nil},
		{named.URL, "run --agent", "cl", []string{"clerk\tagent", "clever\tx"}},
		{named.URL, "workflow start", "cle", []string{"clerk\tworkflow", "clever\tx"}},
		{"http://127.0.0.1:1", "registry show", "plan", []string{agents.Planner + "\tbuilt-in"}},
		{"http://127.0.0.1:1", "plan show", "plan_", nil},
		{slow.URL, "plan cancel", "plan_", nil},
		{slow.URL, "chat --agent", "cl", nil},
	} {
		words := append(append([]string{"__complete"}, strings.Fields(c.args)...), c.begun)
		began := time.Now()
		got := call{args: words, env: map[string]string{"WRIT_URL": c.url, "WRIT_API_KEY": "k"}}.run(t.Context())
		lines := strings.Split(strings.TrimSuffix(got.out, "\n"), "\n")
		if got.code != ExitOK || strings.Join(lines[:len(lines)-1], "\n") != strings.Join(c.want, "\n") {
			t.Errorf("%v: exit %d, %q after %v, %s", words, got.code, lines, time.Since(began), got.err)
		}
	}
}

// content of a file; empty: there is none.
func content(t *testing.T, path string) string {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	return string(raw)
}
