package node

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"aob.dev/writ/policies"
	"aob.dev/writ/storage"
)

const (
	saysInForce   = "policy in force"
	saysNotLoaded = "policy not loaded; the old one stays in force"
)

// tree writes the embedded policies into a directory and names one module of it.
func tree(t *testing.T) (dir, module string) {
	t.Helper()
	dir = t.TempDir()
	for name, content := range policies.Embedded() {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(name, "authz.rego") {
			module = path
		}
	}
	if module == "" {
		t.Fatal("the embedded policies have no authz.rego any more")
	}
	return dir, module
}

func rewrite(t *testing.T, path string, change func(string) string) {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(change(string(raw))), 0o600); err != nil {
		t.Fatal(err)
	}
}

// recorded waits for the record at a position.
func recorded(t *testing.T, n *Node, position int64) storage.Record {
	t.Helper()
	if err := n.recorder.Reach(t.Context(), position+1); err != nil {
		t.Fatal(err)
	}
	r, err := n.Records().Get(t.Context(), position)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestPolicyReload: a changed tree is put in force and its digest recorded, so
// that later decisions name it; a broken one is refused whole.
func TestPolicyReload(t *testing.T) {
	dir, module := tree(t)
	cfg, log := config(t.TempDir()), newMessages()
	cfg.Policy.Dir, cfg.Log = dir, log.logger()
	n := open(t, cfg)
	run(t, n)
	next := n.Records().Next()
	first := n.policy.Engine().Digest()

	rewrite(t, module, func(s string) string { return s + "\n# a remark\n" })
	log.wait(t, saysInForce, 1)
	second := n.policy.Engine().Digest()
	if second == first {
		t.Error("the digest is that of the old tree")
	}
	if got := controlOf(t, recorded(t, n, next)).Policy; got != second || n.directory.View().PolicyDigest() != second {
		t.Errorf("recorded %s, in force %s", got, second)
	}
	good, err := os.ReadFile(module)
	if err != nil {
		t.Fatal(err)
	}

	broken := map[string]func(string) string{
		"does not parse":   func(s string) string { return s + "\nallow if {\n" },
		"does not compile": func(s string) string { return s + "\nallow if nothing_of_this_name\n" },
		"allows what must be refused": func(s string) string {
			return strings.Replace(s, "\"deny\": deny,", "\"deny\": set(),", 1)
		},
		"refuses everything": func(string) string { return "package writ.authz\n\nimport rego.v1\n\ndecision := {\"allow\": false}\n" },
	}
	times := 0
	for name, change := range broken {
		times++
		rewrite(t, module, func(string) string { return change(string(good)) })
		log.wait(t, saysNotLoaded, times)
		if got := n.policy.Engine().Digest(); got != second {
			t.Errorf("a policy that %s is in force", name)
		}
	}
	if got := n.Records().Next(); got != next+1 {
		t.Errorf("%d records about policies that were refused", got-next-1)
	}
	if !n.router.Ready() {
		t.Error("a refused policy stopped the router")
	}

	rewrite(t, module, func(string) string { return string(good) + "\n# another remark\n" })
	log.wait(t, saysInForce, 2)
	if got := controlOf(t, recorded(t, n, next+1)).Policy; got != n.policy.Engine().Digest() || got == second {
		t.Errorf("after the broken ones: recorded %s", got)
	}
}

// TestPolicyOfStart: what is in force at a start is recorded before any intent, and
// only where it changed.
func TestPolicyOfStart(t *testing.T) {
	dir, module := tree(t)
	cfg := config(t.TempDir())
	once(t, cfg)
	cfg.Policy.Dir = dir // the same tree in another place
	if _, records := once(t, cfg); len(records) != len(firstRecords) {
		t.Errorf("the same policy was recorded again: %v", shortAll(t, records))
	}
	rewrite(t, module, func(s string) string { return s + "\n# a remark\n" })
	_, records := once(t, cfg)
	if d := cmp.Diff(append(firstRecords[:len(firstRecords):len(firstRecords)], "control policy"), shortAll(t, records)); d != "" {
		t.Errorf("records (-want +got):\n%s", d)
	}
}

// TestPolicyBrokenAtStart: there is no old one that could stay, so nothing starts.
func TestPolicyBrokenAtStart(t *testing.T) {
	for name, change := range map[string]func(dir, module string){
		"does not parse": func(_, module string) { rewrite(t, module, func(s string) string { return s + "\nallow if {\n" }) },
		"is not there":   func(dir, _ string) { mustRemove(t, dir) },
	} {
		dir, module := tree(t)
		change(dir, module)
		cfg := config(t.TempDir())
		cfg.Policy.Dir = dir
		if n, err := Open(t.Context(), cfg); n != nil || err == nil {
			t.Errorf("a policy that %s: error = %v", name, err)
		}
		if _, err := os.Stat(filepath.Join(cfg.Dir, "keys")); err == nil {
			t.Errorf("a policy that %s: keys were made", name)
		}
	}
}

func mustRemove(t *testing.T, dir string) {
	t.Helper()
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
}
