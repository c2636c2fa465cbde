package agents

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/rogpeppe/go-internal/txtar"

	"aob.dev/writ/internal/rootdir"
)

// environment of the tests.
func environment(name string) string {
	return map[string]string{
		"QUOTED": `x", type: mcp, y: "`, "URL": "https://a.example/mcp", "EMPTY": "", "HALF": "0.5",
	}[name]
}

// tree of an archive.
func tree(a *txtar.Archive) fstest.MapFS {
	dir := fstest.MapFS{}
	for _, f := range a.Files {
		dir[f.Name] = &fstest.MapFile{Data: f.Data}
	}
	return dir
}

// TestRefused: each vector is a registry with one fault. Its comment gives the expected fault
// after "! ": file, line, pointer, and what to do. The folder system is the layer below.
func TestRefused(t *testing.T) {
	names, err := filepath.Glob("testdata/refused/*.txtar")
	if err != nil || len(names) < 120 {
		t.Fatalf("%d vectors, %v", len(names), err)
	}
	for _, name := range names {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".txtar"), func(t *testing.T) {
			a, err := txtar.ParseFile(name)
			if err != nil {
				t.Fatal(err)
			}
			var want []string
			for line := range strings.Lines(string(a.Comment)) {
				if said, ok := strings.CutPrefix(line, "! "); ok {
					want = append(want, strings.TrimSuffix(said, "\n"))
				}
			}
			got := refusal(t, tree(a))
			if len(got) != len(want) {
				t.Fatalf("%d faults, want %d:\n%v", len(got), len(want), got)
			}
			for i, f := range got {
				// The text of the schema compiler after the pointer is not compared.
				if said := f.Error(); said != want[i] && (!strings.HasSuffix(want[i], ": ") || !strings.HasPrefix(said, want[i])) {
					t.Errorf("said  %s\nwant  %s", said, want[i])
				}
			}
		})
	}
}

func refusal(t *testing.T, dir fs.FS) Faults {
	t.Helper()
	var below []Scopes
	if _, err := fs.Stat(dir, "system"); err == nil {
		sub, err := fs.Sub(dir, "system")
		if err != nil {
			t.Fatal(err)
		}
		r, err := Read(sub, environment)
		if err != nil {
			t.Fatal(err)
		}
		below = append(below, r.Scopes())
	}
	r, err := Read(dir, environment)
	if err == nil {
		err = r.Check(below...)
	}
	var faults Faults
	if !errors.As(err, &faults) {
		t.Fatalf("got %v", err)
	}
	return faults
}

// TestReadDir: no file from outside the directory gets into a revision, and no variable that is
// not listed.
func TestReadDir(t *testing.T) {
	outside := filepath.Join(t.TempDir(), "key.pem")
	put := func(name, text string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	put(outside, "name: private\ndescription: private\n")
	env := func(name string) string { return map[string]string{"TOKEN": "private", "WHERE": "here"}[name] }
	const agent = "name: a\ndescription: |\n  d\n  {{prompts/rules.md}}\n"
	for name, link := range map[string]string{"a prompt": "prompts/rules.md", "an agent": "agents/b.yaml", "a folder": "prompts", "a workflow": "workflows/w.yaml", "a document": "skills/s/skill.md"} {
		dir := t.TempDir()
		put(filepath.Join(dir, "agents", "a.yaml"), "name: a\ndescription: d\n")
		at, to := filepath.Join(dir, link), outside
		if name == "a folder" {
			to = filepath.Dir(outside)
		}
		if err := errors.Join(os.MkdirAll(filepath.Dir(at), 0o700), os.Symlink(to, at)); err != nil {
			t.Fatal(err)
		}
		if r, err := ReadDir(dir, env, nil); err == nil || !strings.Contains(err.Error(), link+": "+rootdir.ErrNotPlain.Error()) {
			t.Errorf("%s: %v, %v", name, r, err)
		}
	}
	dir := t.TempDir()
	put(filepath.Join(dir, "agents", "a.yaml"), agent)
	put(filepath.Join(dir, "prompts", "rules.md"), "Be brief.\n")
	put(filepath.Join(dir, "agents", "b.yaml"), "name: b\ndescription: ${WHERE} ${UNSET:-default}\n")
	if r, err := ReadDir(dir, env, []string{"WHERE"}); err != nil || !strings.Contains(string(r.Files()["agents/b.yaml"]), "here default") {
		t.Error(r, err)
	}
	for _, text := range []string{"${TOKEN}", "${TOKEN:-default}"} {
		put(filepath.Join(dir, "agents", "b.yaml"), "name: b\ndescription: "+text+"\n")
		if r, err := ReadDir(dir, env, []string{"WHERE"}); err == nil || !strings.Contains(err.Error(), "agents/b.yaml:2: the variable TOKEN is not for agents") {
			t.Errorf("%s: %v, %v", text, r, err)
		}
	}
}
