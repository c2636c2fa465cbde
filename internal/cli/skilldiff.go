package cli

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"aob.dev/writ/intents"
	"aob.dev/writ/internal/datadir"
)

// skillVersions are a skill as it is approved and as it is declared now.
type skillVersions struct {
	pinned intents.Pin
	before *datadir.SkillSheet // nil: nothing is approved, or it was never seen here
	now    datadir.SkillSheet
}

func skillDiff(std IO) *cobra.Command {
	var data, tenant string
	cmd := &cobra.Command{
		Use: "diff NAME", Short: "Show what a skill declares now, beside what is approved; exit 1 where it differs", Args: cobra.ExactArgs(1),
		ValidArgsFunction: skillNames(std),
		RunE: func(cmd *cobra.Command, args []string) error {
			s, err := versionsOf(cmd.Context(), data, tenant, args[0])
			if err != nil {
				return err
			}
			if err := s.print(std, std.Out); err != nil || s.pinned.Digest == s.now.Digest {
				return err
			}
			return silent("it differs")
		},
	}
	dataFlag(&data)(cmd)
	cmd.Flags().StringVar(&tenant, "tenant", "default", "whose approvals")
	return cmd
}

// versionsOf a skill of a data directory.
func versionsOf(ctx context.Context, data, tenant, name string) (s skillVersions, err error) {
	sheets, err := datadir.ReadSkillSheets(data)
	if err != nil {
		return s, malformed(err)
	}
	d, err := folded(ctx, data)
	if err != nil {
		return s, err
	}
	rows, ok := d.Rows(tenant)
	if !ok {
		return s, no(fmt.Errorf("no such tenant: %s%s", tenant, meant(tenant, d.Tenants())))
	}
	for _, pin := range rows.Skills {
		if pin.Skill == name {
			s.pinned = pin
		}
	}
	var known []string
	declared := 0
	for i, x := range sheets {
		known = append(known, x.Name)
		if x.Digest == s.pinned.Digest {
			s.before = &sheets[i]
		}
		if x.Name == name && x.Declared {
			declared++
			s.now = x
		}
	}
	switch {
	case declared == 0:
		return s, no(fmt.Errorf("no skill server of %s declares %q%s", data, name, meant(name, known)))
	case declared > 1:
		return s, no(fmt.Errorf("%d skill servers declare %q: approve one by its --digest, as the log of writ names it", declared, name))
	}
	return s, nil
}

// print shows the version that is declared: what differs from the approved one,
// or all of it where that is not known.
func (s skillVersions) print(std IO, w io.Writer) error {
	was := "nothing is approved"
	if s.pinned.Digest != "" {
		was = "approved " + s.pinned.Digest + " as " + s.pinned.Effect
	}
	fmt.Fprintf(w, "%s\ndeclared %s, by its hints %s\n", was, s.now.Digest, s.now.Effect)
	after := sheetText(s.now)
	switch {
	case s.pinned.Digest == s.now.Digest:
		fmt.Fprintln(w, "no difference")
		return nil
	case s.before == nil:
		if s.pinned.Digest != "" {
			fmt.Fprintln(w, "the approved version was not seen here; this is the whole of the new one:")
		}
		_, err := w.Write(after)
		return err
	}
	before := sheetText(*s.before)
	if bytes.Equal(before, after) {
		_, err := fmt.Fprintln(w, "all that is declared is the same; it is another server, or the same elsewhere")
		return err
	}
	return printDiff(IO{Out: w, Err: std.Err, Env: std.Env}, visible(s.now.Name, ""), before, after)
}

// sheetText is a sheet, a line for each thing, with nothing hidden in it.
func sheetText(s datadir.SkillSheet) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "server: %s\nhints: %s\ndescription:\n", visible(s.Server, ""), s.Effect)
	for line := range strings.SplitSeq(s.Description, "\n") {
		fmt.Fprintf(&b, "  | %s\n", visible(line, "\t"))
	}
	for _, part := range []struct {
		name string
		raw  json.RawMessage
	}{{"input", s.InputSchema}, {"output", s.OutputSchema}, {"annotations", s.Annotations}} {
		var text bytes.Buffer
		if json.Indent(&text, part.raw, "  ", "  ") != nil {
			text.Reset()
			text.Write(part.raw)
		}
		fmt.Fprintf(&b, "%s:\n  %s\n", part.name, visible(text.String(), "\n"))
	}
	return b.Bytes()
}

// declaredNow is the version that is to be approved by its name, once somebody
// has seen it and said yes.
func declaredNow(cmd *cobra.Command, std IO, f tenantFlags, name string, sure bool) (skillVersions, error) {
	tenant := f.tenant
	if tenant == "" {
		tenant = "default"
	}
	s, err := versionsOf(cmd.Context(), f.data, tenant, name)
	if err != nil {
		return s, err
	}
	if err := s.print(std, std.Err); err != nil || sure {
		return s, err
	}
	in, ok := std.In.(*os.File)
	if !ok || !term.IsTerminal(int(in.Fd())) {
		return s, usage(errors.New("nobody is there to be asked: look at it with writ skill diff, and say --yes or --digest"))
	}
	fmt.Fprintf(std.Err, "approve this version of %s? [y/N] ", visible(name, ""))
	answer, _ := bufio.NewReader(in).ReadString('\n')
	if a := strings.ToLower(strings.TrimSpace(answer)); a != "y" && a != "yes" {
		return s, no(errors.New("not approved"))
	}
	return s, nil
}

// skillNames completes skills that are declared now.
func skillNames(std IO) cobra.CompletionFunc {
	return completing(std, func(_ context.Context, _ *cobra.Command, t target) []string {
		sheets, err := datadir.ReadSkillSheets(t.Data.Value)
		if err != nil {
			return nil
		}
		var out []string
		for _, s := range sheets {
			if s.Declared {
				out = append(out, s.Name+"\t"+oneLine(s.Description, 60))
			}
		}
		slices.Sort(out)
		return out
	})
}
