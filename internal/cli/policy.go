package cli

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	textdiff "github.com/rogpeppe/go-internal/diff"

	"aob.dev/writ/policies"
)

// readTree reads the tree that a command names; none: the embedded one. It does not
// check signatures of bundles, because the user already trusts the tree.
func readTree(args []string) (tree policies.Tree, err error) {
	switch {
	case len(args) == 0:
		return policies.Tree{Source: policies.Embedded()}, nil
	case strings.HasSuffix(args[0], ".tar.gz"):
		var raw []byte
		if raw, err = readFile(args[0]); err == nil {
			tree, err = policies.ReadBundle(raw, nil)
		}
	default:
		tree.Source, err = policies.ReadDir(args[0])
	}
	if err != nil {
		err = malformed(err)
	}
	return tree, err
}

func policyCheck(c *command) {
	c.answer = func(args []string) (answer, error) {
		tree, err := readTree(args)
		if err != nil {
			return answer{}, err
		}
		r, err := policies.CheckAny(c.Context(), tree.Source)
		if err != nil {
			return answer{}, err
		}
		a := answer{data: r, text: render("policy.table", r)}
		if len(r.Volatile) > 0 {
			a.note = fmt.Sprintf("warning: %s is almost never the same twice: nearly every order is evaluated again\n", strings.Join(r.Volatile, ", "))
		}
		return a, nil
	}
}

func policyFmt(c *command) {
	var write, diff bool
	c.run = func(args []string) error {
		source, err := policies.ReadDir(args[0])
		if err != nil {
			return malformed(err)
		}
		changed := 0
		for _, name := range slices.Sorted(maps.Keys(source)) {
			if !strings.HasSuffix(name, ".rego") {
				continue
			}
			out, err := policies.Format(name, source[name])
			if err != nil {
				return malformed(err)
			}
			if bytes.Equal(out, source[name]) {
				continue
			}
			changed++
			if diff {
				_, err = c.std.Out.Write(textdiff.Diff(name, source[name], name, out))
			} else {
				_, err = fmt.Fprintln(c.std.Out, name)
			}
			if err == nil && write {
				err = rewriteFile(filepath.Join(args[0], filepath.FromSlash(name)), out)
			}
			if err != nil {
				return err
			}
		}
		if changed > 0 && !write {
			return silent("not formatted")
		}
		return nil
	}
	c.Flags().BoolVarP(&write, "write", "w", false, "write the files")
	c.Flags().BoolVarP(&diff, "diff", "d", false, "print what would change")
}

// rewriteFile replaces the content of a file, and keeps its mode.
func rewriteFile(path string, content []byte) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	return os.WriteFile(path, content, info.Mode().Perm())
}
