package cli

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"aob.dev/writ/policies"
)

func policyCommand(std IO) *cobra.Command {
	cmd := &cobra.Command{
		Use: "policy", Short: "Check, test, explain, sign and try out policies", Args: oneOfThese, RunE: help,
		Long: "Work on a tree of policies: a directory, or a bundle (*.tar.gz); without one, the\n" +
			"embedded default. `backtest` tries a new tree on the recorded decisions.",
	}
	cmd.AddCommand(policyCheck(std), policyTest(std), policyCoverage(std), policyFmt(std), policyExplain(std), policyBacktest(std), policyBundle(std), policyPush(std))
	return cmd
}

// readTree reads the tree that a command names. Signatures of bundles are not
// looked at: who works on a tree has it already.
func readTree(args []string) (policies.Tree, error) {
	if len(args) == 0 {
		return policies.Tree{Source: policies.Embedded()}, nil
	}
	if strings.HasSuffix(args[0], ".tar.gz") {
		raw, err := os.ReadFile(args[0])
		if err != nil {
			return policies.Tree{}, err
		}
		return policies.ReadBundle(raw, nil)
	}
	source, err := policies.ReadDir(args[0])
	return policies.Tree{Source: source}, err
}

func policyCheck(std IO) *cobra.Command {
	cmd := answering(std, &cobra.Command{
		Use: "check [DIR|BUNDLE]", Short: "Compile strictly, and say what the policy reads", Args: cobra.MaximumNArgs(1),
		Long: "Compile strictly, and say what the policy reads. A tree without package writ.authz is an\n" +
			"extension: it is compiled on the embedded tree, and its own rules are listed.",
	}, func(cmd *cobra.Command, args []string) (answer, error) {
		tree, err := readTree(args)
		if err != nil {
			return answer{}, malformed(err)
		}
		check := policies.Check
		if policies.IsExtension(tree.Source) {
			check = policies.CheckExtension
		}
		r, err := check(cmd.Context(), tree.Source)
		if err != nil {
			return answer{}, no(err)
		}
		a := answer{data: r, text: aligned(func(t io.Writer) {
			for _, rule := range r.Rules {
				fmt.Fprintf(t, "%s\t%s\t%s:%d\n", rule.ID, rule.Title, rule.File, rule.Line)
			}
		})}
		a.text += fmt.Sprintf("%s\n%d rules; a decision is remembered under the values of:\n", r.Digest, len(r.Rules))
		for _, path := range r.Reads {
			a.text += "  " + path + "\n"
		}
		if len(r.Volatile) > 0 {
			a.note = fmt.Sprintf("warning: %s hardly ever repeats: nearly every order is evaluated anew\n", strings.Join(r.Volatile, ", "))
		}
		return a, nil
	})
	return cmd
}

func policyFmt(std IO) *cobra.Command {
	var write, diff bool
	cmd := &cobra.Command{
		Use: "fmt DIR", Short: "Format Rego as opa fmt does; exit 1 where a file is not formatted, unless -w", Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
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
					err = printDiff(std, name, source[name], out)
				} else {
					_, err = fmt.Fprintln(std.Out, name)
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
		},
	}
	cmd.Flags().BoolVarP(&write, "write", "w", false, "write the files")
	cmd.Flags().BoolVarP(&diff, "diff", "d", false, "print what would change")
	return cmd
}

// rewriteFile gives a file new content, with the mode that it has.
func rewriteFile(path string, content []byte) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	return os.WriteFile(path, content, info.Mode().Perm())
}

// printDiff prints the lines that go and come, with where they stand.
func printDiff(std IO, name string, before, after []byte) error {
	a, b := strings.SplitAfter(string(before), "\n"), strings.SplitAfter(string(after), "\n")
	common := make([][]int, len(a)+1) // longest common subsequence of the rests
	for i := range common {
		common[i] = make([]int, len(b)+1)
	}
	for i := len(a) - 1; i >= 0; i-- {
		for j := len(b) - 1; j >= 0; j-- {
			if common[i][j] = max(common[i+1][j], common[i][j+1]); a[i] == b[j] {
				common[i][j] = common[i+1][j+1] + 1
			}
		}
	}
	var out strings.Builder
	for i, j := 0, 0; i < len(a) || j < len(b); {
		switch {
		case i < len(a) && j < len(b) && a[i] == b[j]:
			i, j = i+1, j+1
		case i < len(a) && (j == len(b) || common[i+1][j] >= common[i][j+1]):
			fmt.Fprintf(&out, "%s:%d: -%s\n", name, i+1, strings.TrimSuffix(a[i], "\n"))
			i++
		default:
			fmt.Fprintf(&out, "%s:%d: +%s\n", name, j+1, strings.TrimSuffix(b[j], "\n"))
			j++
		}
	}
	_, err := fmt.Fprint(std.Out, out.String())
	return err
}
