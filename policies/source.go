package policies

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/util"

	"aob.dev/writ/intents"
	"aob.dev/writ/internal/rootdir"
)

// maxSource bounds a policy tree as a whole: a mistaken directory is refused
// before it is read into memory.
const maxSource = 8 << 20

//go:embed writ
var embedded embed.FS

// Source is a policy tree as read: slash-separated path to content. It contains Rego modules
// (including tests, which the engine leaves out) and data documents (data.json, data.yaml), laid
// out as OPA's own tools expect.
type Source map[string][]byte

// Embedded is the default tree.
func Embedded() Source {
	sub, err := fs.Sub(embedded, "writ")
	if err != nil {
		panic(err) // a constant name
	}
	s, err := Read(sub)
	if err != nil {
		panic(err) // read from the binary itself
	}
	return s
}

// ReadDir reads the tree below a directory. Files and directories whose name begins with a dot
// are skipped. People can read policies, so links are not followed.
func ReadDir(dir string) (Source, error) {
	d, err := rootdir.Open(dir)
	if err != nil {
		return nil, fmt.Errorf("policies in %s: %w", dir, err)
	}
	s, err := Read(d)
	if err = errors.Join(err, d.Close()); err != nil {
		return nil, fmt.Errorf("policies in %s: %w", dir, err)
	}
	return s, nil
}

// Read reads a tree. One without any Rego module is refused.
func Read(tree fs.FS) (Source, error) {
	s, size, modules := Source{}, int64(0), 0
	err := fs.WalkDir(tree, ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case name != "." && strings.HasPrefix(d.Name(), "."):
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil
		case d.IsDir() || !isModule(name) && !isData(name):
			return nil
		}
		content, err := fs.ReadFile(tree, name)
		if err != nil {
			return err
		}
		if size += int64(len(content)); size > maxSource {
			return fmt.Errorf("more than %d bytes", maxSource)
		}
		if isModule(name) {
			modules++
		}
		s[name] = content
		return nil
	})
	if err != nil {
		return nil, err
	}
	if modules == 0 {
		return nil, errors.New("no Rego module")
	}
	return s, nil
}

// Deciding is the part of the tree that decides: everything except tests.
func (s Source) Deciding() Source {
	out := maps.Clone(s)
	maps.DeleteFunc(out, func(name string, _ []byte) bool { return isTest(name) })
	return out
}

// Manifest lists the files that decide: the JCS map of path to "sha256:" and the hex SHA-256 of
// the content. Tests are left out. It is nil if a path is not UTF-8.
func (s Source) Manifest() []byte {
	doc, err := intents.FileList(s.Deciding())
	if err != nil {
		return nil
	}
	return doc
}

// Digest identifies the files that decide: SHA-256 over the manifest, so that a tree can be
// found by its digest among blobs stored by digest.
func (s Source) Digest() string {
	doc := s.Manifest()
	if doc == nil {
		return "" // no digest matches the empty one
	}
	return intents.Digest(doc)
}

// names in a fixed order, so that errors and module order are reproducible.
func (s Source) names() []string { return slices.Sorted(maps.Keys(s)) }

// documents merges the data files: one in a/b/ is at data.a.b.
func (s Source) documents() (map[string]any, error) {
	root := map[string]any{}
	for _, name := range s.names() {
		if !isData(name) {
			continue
		}
		var doc map[string]any
		if err := util.Unmarshal(s[name], &doc); err != nil {
			return nil, fmt.Errorf("%s: %v", name, err)
		}
		at := root
		if dir := path.Dir(name); dir != "." {
			for part := range strings.SplitSeq(dir, "/") {
				next, ok := at[part].(map[string]any)
				if !ok {
					next = map[string]any{}
					at[part] = next
				}
				at = next
			}
		}
		for key, value := range doc {
			if _, taken := at[key]; taken {
				return nil, fmt.Errorf("%s: %q stands in another data file too", name, key)
			}
			at[key] = value
		}
	}
	return root, nil
}

func isModule(name string) bool { return strings.HasSuffix(name, ".rego") }
func isTest(name string) bool   { return strings.HasSuffix(name, "_test.rego") }

func isData(name string) bool {
	base := path.Base(name)
	return base == "data.json" || base == "data.yaml"
}
