package state_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/testing/routertest"
	"aob.dev/writ/state"
)

// TestTransitions: each catalog row of the router has exactly one transition, and each
// transition such a row.
func TestTransitions(t *testing.T) {
	var rows []string
	for _, r := range catalog.Builtin().Rows() {
		if r.Executor == catalog.ExecutorRouter {
			rows = append(rows, r.Type)
		}
	}
	transitions := state.TransitionTypes()
	slices.Sort(rows)
	slices.Sort(transitions)
	if d := cmp.Diff(rows, transitions); d != "" {
		t.Errorf("(-rows +moves):\n%s", d)
	}
	for _, typ := range transitions {
		if !state.Has(typ) {
			t.Errorf("%s: not found", typ)
		}
	}
}

var fenced = regexp.MustCompile("(?s)```(go|json)\n(.*?)```")

// inDocs returns the blocks of docs/intents.md: the row, two schemas, the file.
func inDocs(t *testing.T) (args, result json.RawMessage, file string) {
	t.Helper()
	page, err := os.ReadFile("../docs/intents.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := fenced.FindAllStringSubmatch(string(page), -1)
	if len(blocks) != 4 {
		t.Fatalf("%d blocks", len(blocks))
	}
	return json.RawMessage(blocks[1][2]), json.RawMessage(blocks[2][2]), blocks[3][2]
}

// withLogout is the catalog with the row of docs/intents.md. A row with schemas of its
// own has a vendor's name.
func withLogout(t *testing.T) *catalog.Catalog {
	t.Helper()
	args, result, _ := inDocs(t)
	row, err := json.Marshal(map[string]any{
		"type": "x.acme.logout", "title": "End the user's grants", "capability": "x.acme:logout", "signed_by": []string{"gateway"},
		"executor": "x-acme", "effect": "idempotent", "args_schema": args, "result_schema": result,
	})
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "x.acme.logout.json"), row, 0o600); err != nil {
		t.Fatal(err)
	}
	rows, err := catalog.ReadVendors(dir)
	if err != nil {
		t.Fatal(err)
	}
	rows[0].Executor, rows[0].Capability = catalog.ExecutorRouter, "sessions:write"
	c, err := catalog.Extend(rows)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestNewIntent adds an intent type of the router as docs/intents.md describes, and nothing else.
// Such an intent is judged and applied like any other, and a restart replays it.
func TestNewIntent(t *testing.T) {
	_, _, file := inDocs(t)
	compiled, err := os.ReadFile("logout_test.go")
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(strings.ReplaceAll(string(compiled), "x.acme.logout", "logout"), file); d != "" {
		t.Fatalf("the page shows another file (-compiled +page):\n%s", d)
	}
	state.WithLogout(t)
	w := routertest.New(t, routertest.Options{Catalog: withLogout(t)})
	logout := routertest.Intent{By: w.Gateway, Type: "x.acme.logout", Args: map[string]string{"reason": "going home"}}
	early := w.Clock.Now()
	w.Clock.Move(time.Minute)

	wrong := logout
	wrong.Args = map[string]int{"reason": 1}
	w.Want(w.Do(wrong), intents.SchemaInvalid)
	stolen := logout
	stolen.By = w.Manager
	w.Want(w.Do(stolen), intents.KeyRole)
	if got := routertest.Result[catalog.Ack](w, w.OK(logout)); !got.Accepted {
		t.Error("not told that it is accepted")
	}
	again := logout
	again.Key = "again"
	if a := w.Want(w.Do(again), intents.MalformedArgs); a.Pointer != "/intent/type" {
		t.Errorf("%+v", a)
	}

	old := w.NewPlan("p1").OpenIntent()
	old.Grant = func(g *intents.Grant) { g.IssuedAt = early.Unix() }
	w.Want(w.Do(old), intents.GrantInvalid)
	other := old
	other.User, other.Key = "bob", "k"
	w.Want(w.Do(other), intents.OK)
	w.Clock.Move(time.Minute)
	w.OK(w.NewPlan("p2").OpenIntent())

	after := w.Restart()
	after.Want(after.Do(old), intents.GrantInvalid)
	after.OK(after.NewPlan("p3").OpenIntent())
}
