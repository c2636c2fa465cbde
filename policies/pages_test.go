package policies

import (
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// idOfSample is the id of a rule in a sample.
var idOfSample = regexp.MustCompile(`(?m)^#   id: (.*)$`)

// pages are all pages of the repository except docs/sources, which are not ours.
func pages(t *testing.T) (out []string) {
	t.Helper()
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		name := d.Name()
		switch {
		case err != nil:
			return err
		case d.IsDir() && path != ".." && (strings.HasPrefix(name, ".") || name == "sources" || name == "bin" || name == "testdata"):
			return filepath.SkipDir
		case strings.HasSuffix(name, ".md"):
			out = append(out, path)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// sampled is the tree of a sample: an extension or masks on the embedded tree; a single rule
// belongs to data.writ.authz and replaces the tree's rule of the same id.
func sampled(t *testing.T, sample string) Source {
	t.Helper()
	tree, s := Embedded().Deciding(), Source{"sample.rego": []byte(sample)}
	if strings.Contains(sample, "package writ.ext.") {
		tree, err := On(tree, s)
		if err != nil {
			t.Fatal(err)
		}
		return tree
	}
	if !strings.HasPrefix(sample, "package ") {
		for _, found := range idOfSample.FindAllStringSubmatch(sample, -1) {
			for file, content := range tree {
				tree[file] = []byte(strings.Replace(string(content), "id: "+found[1]+"\n", "id: "+found[1]+".was\n", 1))
			}
		}
		sample = "package writ.authz\n\n" + sample
	}
	tree["sample.rego"] = []byte(sample)
	return tree
}

// TestSamplesOfPages: every Rego sample of every page compiles as what it stands for, and its
// rules refuse or hold the intents that they are written for.
func TestSamplesOfPages(t *testing.T) {
	data := Data{Tenants: map[string]map[string]json.RawMessage{"acme": {"python": json.RawMessage("false")}}}
	inputs := map[string]any{
		"crm.close_outlet": map[string]any{"skill": "crm.close_outlet", "input": map[string]any{"region": "south"}},
		"exec_python":      map[string]any{"code": "1"},
	}
	seen := 0
	for _, page := range pages(t) {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for i, part := range strings.Split(string(text), "```rego\n")[1:] {
			sample, _, _ := strings.Cut(part, "\n```")
			seen++
			e, err := New(sampled(t, sample))
			if err != nil {
				t.Errorf("%s, sample %d: %v", page, i+1, err)
				continue
			}
			e = withData(t, e, data)
			var met []string
			for name, args := range inputs {
				r := decide(t, e, calling(name, args))
				for _, rule := range slices.Concat(r.Deny, r.Hold) {
					met = append(met, rule.ID)
				}
			}
			for _, found := range idOfSample.FindAllStringSubmatch(sample, -1) {
				if !slices.Contains(met, found[1]) {
					t.Errorf("%s, sample %d: no intent of the test meets the rule %s, but %v: write one", page, i+1, found[1], met)
				}
			}
		}
	}
	if seen < 2 {
		t.Errorf("the pages have %d samples", seen)
	}
}

// calling is the input for a call with the given arguments.
func calling(name string, args any) map[string]any {
	in, typ := sample(), name
	if strings.Contains(name, ".") {
		typ = "skill.call"
	}
	in["intent"] = map[string]any{"type": typ, "args": args}
	return in
}

// TestExtensionOnAnother: an extension under trial replaces the tree's extension of the same
// package.
func TestExtensionOnAnother(t *testing.T) {
	const rule = "package writ.ext.hours\n\n# METADATA\n# title: T\n# description: D.\n# custom:\n#   id: ID\ndeny contains {\"id\": \"ID\", \"reason\": \"d\"} if input.intent.type == \"skill.call\"\n"
	of := func(id string) Source { return Source{"hours.rego": []byte(strings.ReplaceAll(rule, "ID", id))} }
	tree, err := On(Embedded(), of("hours.old"))
	if err == nil {
		tree, err = On(tree, of("hours.new"))
	}
	if err != nil {
		t.Fatal(err)
	}
	var ids []string
	for _, r := range decide(t, engine(t, tree), sample()).Deny {
		ids = append(ids, r.ID)
	}
	if slices.Contains(ids, "hours.old") || !slices.Contains(ids, "hours.new") {
		t.Errorf("%v", ids)
	}
}
