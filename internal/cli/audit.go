package cli

import (
	"bufio"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"

	"aob.dev/writ/audit"
	"aob.dev/writ/internal/config"
	"aob.dev/writ/internal/datadir"
	"aob.dev/writ/internal/durable"
	"aob.dev/writ/policies"
)

func auditCommand(std IO) *cobra.Command {
	cmd := &cobra.Command{
		Use: "audit", Short: "Export, verify, replay and prove the record", Args: oneOfThese, RunE: help,
		Long: "Read the record of a data directory (export, show, prove, tail, trust), or check a\n" +
			"bundle that was exported from one, with nothing else at hand (verify, replay).",
	}
	cmd.AddCommand(auditExport(std), auditVerify(std, false), auditVerify(std, true), auditShow(std), auditSearch(std), auditFsck(std), auditProve(std), auditTail(std), auditTrust(std))
	return cmd
}

// withArchive opens the data directory for a command.
func withArchive(ctx context.Context, dir string, fn func(*datadir.Archive) error) error {
	a, err := datadir.OpenArchive(ctx, dir)
	if err != nil {
		return malformed(err)
	}
	return errors.Join(fn(a), a.Close())
}

// dataFlag names a data directory.
func dataFlag(dir *string) func(*cobra.Command) {
	return func(cmd *cobra.Command) {
		cmd.Flags().StringVar(dir, "data", config.Default().Data, "data directory; the process that uses it may be running")
	}
}

func auditExport(std IO) *cobra.Command {
	var dir, out, checkpoint string
	var sel audit.Selection
	var asJSON bool
	cmd := &cobra.Command{
		Use: "export --out FILE", Short: "Write a bundle that verifies with nothing else at hand", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if checkpoint != "" {
				text, err := os.ReadFile(checkpoint) //nolint:gosec // G304: the user names the file
				if err != nil {
					return malformed(err)
				}
				sel.Checkpoint = string(text)
			}
			return withArchive(cmd.Context(), dir, func(a *datadir.Archive) error {
				if err := a.Settle(cmd.Context()); err != nil {
					return no(err)
				}
				done, err := exportTo(cmd.Context(), std, out, a, sel)
				if err != nil {
					return no(err)
				}
				if asJSON && out != "-" {
					return printJSON(std.Out, done)
				}
				fmt.Fprintf(std.Err, "%d records, %d bare leaves, %d bytes, up to position %d\n", done.Records, done.Leaves, done.Bytes, done.Size-1)
				if done.Pending > 0 {
					fmt.Fprintf(std.Err, "%d records are in no checkpoint yet and not in the bundle\n", done.Pending)
				}
				return nil
			})
		},
	}
	dataFlag(&dir)(cmd)
	jsonFlag(cmd, &asJSON)
	cmd.Flags().StringVarP(&out, "out", "o", "-", "file; - is standard output")
	cmd.Flags().StringVar(&sel.Tenant, "tenant", "", "records of this tenant, and what they rest on")
	cmd.Flags().Var(&timeFlag{at: &sel.Since, ago: true}, "since", "records from this RFC 3339 time, or from so long ago (7d, 12h)")
	cmd.Flags().BoolVar(&sel.Complete, "complete", false, "with --tenant: prove that no record of the tenant is left out")
	cmd.Flags().BoolVar(&sel.Masked, "masked", false, "withhold the arguments of orders of which a policy masks some")
	cmd.Flags().StringVar(&checkpoint, "since-checkpoint", "", "file with a checkpoint: show that the log has only grown since")
	return cmd
}

// exportTo writes a bundle to a file, whole or not at all, or to standard output.
func exportTo(ctx context.Context, std IO, out string, a *datadir.Archive, sel audit.Selection) (audit.Exported, error) {
	if out == "-" {
		return audit.Export(ctx, std.Out, a.Source, sel)
	}
	var done audit.Exported
	err := durable.Stream(out, func(f io.Writer) (err error) {
		w := bufio.NewWriterSize(f, 1<<20)
		done, err = audit.Export(ctx, w, a.Source, sel)
		return errors.Join(err, w.Flush())
	})
	return done, err
}

// sinceTime reads a time, or a duration before now; days too.
func sinceTime(s string, now time.Time) (time.Time, error) {
	if at, err := time.Parse(time.RFC3339, s); err == nil {
		return at, nil
	}
	var days int
	if n, err := fmt.Sscanf(s, "%dd", &days); n == 1 && err == nil && s == fmt.Sprintf("%dd", days) {
		return now.AddDate(0, 0, -days), nil
	}
	d, err := time.ParseDuration(s)
	if err != nil || d < 0 {
		return now, fmt.Errorf("%q is neither an RFC 3339 time nor a duration such as 7d or 12h", s)
	}
	return now.Add(-d), nil
}

func auditVerify(std IO, replay bool) *cobra.Command {
	var trust, policy, dir string
	var execute bool
	cmd := &cobra.Command{Use: "verify BUNDLE", Short: "Check a bundle offline: every signature, key, grant, task, receipt and Merkle proof", Args: cobra.ExactArgs(1)}
	if replay {
		cmd.Use, cmd.Short = "replay [BUNDLE]", "Verify a bundle and decide every order in it again; nothing is carried out"
		cmd.Args = cobra.MaximumNArgs(1)
	}
	answering(std, cmd, func(cmd *cobra.Command, args []string) (answer, error) {
		switch {
		case len(args) == 0 && !execute:
			return answer{}, usage(errors.New("name a bundle; only replay --execute can read a data directory"))
		case len(args) == 0 && (trust != "" || policy != ""):
			return answer{}, usage(errors.New("--trust and --policy need a bundle"))
		case len(args) == 0:
			e, err := executed(cmd.Context(), std, "", dir)
			if err != nil {
				return answer{}, err
			}
			return answer{data: e, text: fmt.Sprint(e), end: unless(e.OK, "a script comes out otherwise")}, nil
		case execute && args[0] == "-":
			return answer{}, usage(errors.New("--execute reads the bundle twice: name a file"))
		}
		o := audit.Options{Replay: replay}
		if trust != "" {
			raw, err := os.ReadFile(trust) //nolint:gosec // G304: the user names the file
			if err != nil {
				return answer{}, malformed(err)
			}
			if o.Trust, err = audit.ReadTrust(raw); err != nil {
				return answer{}, malformed(err)
			}
		}
		if policy != "" {
			source, err := policies.ReadDir(policy)
			if err != nil {
				return answer{}, malformed(err)
			}
			if o.Policy, err = policies.New(cmd.Context(), source); err != nil {
				return answer{}, malformed(err)
			}
		}
		r, closeAll, err := openBundle(std, args[0])
		if err != nil {
			return answer{}, malformed(err)
		}
		defer closeAll()
		show, done := bar(std, cmd)
		o.Progress = show
		report, err := audit.Verify(cmd.Context(), r, o)
		done()
		if err != nil {
			return answer{}, malformed(err)
		}
		a := answer{text: fmt.Sprint(report), end: unless(report.OK, "not valid")}
		var shadow *audit.Executed
		if execute && report.OK {
			if !cmd.Flags().Changed("data") {
				dir = ""
			}
			e, err := executed(cmd.Context(), std, args[0], dir)
			if err != nil {
				return answer{}, err
			}
			shadow = &e
			a.text, a.end = a.text+fmt.Sprint(shadow), unless(e.OK, "not valid")
		}
		a.data = struct {
			audit.Report
			Execution *audit.Executed `json:"execution,omitempty"`
		}{report, shadow}
		return a, nil
	})
	cmd.Flags().StringVar(&trust, "trust", "", "trust file: the pinned root key and log origin (see writ audit trust)")
	if replay {
		cmd.Flags().StringVar(&policy, "policy", "", "directory of policies to decide with, in place of those of then")
		cmd.Flags().BoolVar(&execute, "execute", false, "run the recorded scripts again in the sandbox, and compare their results")
		cmd.Flags().StringVar(&dir, "data", config.Default().Data, "with --execute: data directory for files and blobs, which no bundle holds")
	}
	return cmd
}

// openBundle opens a file or standard input; gzip is taken off.
func openBundle(std IO, name string) (io.Reader, func(), error) {
	in, closer := std.In, func() {}
	if name != "-" {
		f, err := os.Open(name) //nolint:gosec // G304: the user names the file
		if err != nil {
			return nil, nil, err
		}
		in, closer = f, func() { _ = f.Close() } // only read
	}
	r := bufio.NewReaderSize(in, 1<<20)
	if magic, err := r.Peek(2); err == nil && magic[0] == 0x1f && magic[1] == 0x8b {
		z, err := gzip.NewReader(r)
		if err != nil {
			closer()
			return nil, nil, err
		}
		return z, closer, nil
	}
	return r, closer, nil
}

func auditTrust(std IO) *cobra.Command {
	var dir string
	cmd := &cobra.Command{
		Use: "trust", Short: "Print the trust file of a log, for auditors to pin over another way than the bundles", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return withArchive(cmd.Context(), dir, func(a *datadir.Archive) error { return printJSON(std.Out, audit.NewTrust(a.Root)) })
		},
	}
	dataFlag(&dir)(cmd)
	return cmd
}
