package cli

import (
	"bufio"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"aob.dev/writ/audit"
	"aob.dev/writ/internal/datadir"
	"aob.dev/writ/internal/durable"
)

func auditExport(c *command) {
	var checkpoint string
	var sel audit.Selection
	c.run = func([]string) error {
		if checkpoint != "" {
			text, err := readFile(checkpoint)
			if err != nil {
				return err
			}
			sel.Checkpoint = string(text)
		}
		return c.archive(func(a *datadir.Archive) error {
			if err := a.AwaitCheckpoint(c.Context()); err != nil {
				return err
			}
			done, err := exportTo(c.Context(), c.std, c.out, a, sel)
			if err != nil {
				return err
			}
			if c.asJSON && c.out != "-" {
				return printJSON(c.std.Out, done)
			}
			fmt.Fprintf(c.std.Err, "%d records, %d bare leaves, %d bytes, up to position %d\n", done.Records, done.Leaves, done.Bytes, done.Size-1)
			if done.Pending > 0 {
				fmt.Fprintf(c.std.Err, "%d records are in no checkpoint yet and not in the bundle\n", done.Pending)
			}
			return nil
		})
	}
	c.dataFlag()
	c.jsonFlag()
	c.outFlag("-", "file for the bundle; - is standard output")
	c.Flags().StringVar(&sel.Tenant, "tenant", "", "only records of this tenant, and those that they depend on")
	c.since(&sel.Since, "since", "only records from this RFC 3339 time, or from this long ago (7d, 12h)")
	c.Flags().BoolVar(&sel.Complete, "complete", false, "with --tenant: prove that no record of the tenant is left out")
	c.Flags().BoolVar(&sel.Masked, "masked", false, "withhold the arguments of an intent if a policy masks any of them")
	c.Flags().StringVar(&checkpoint, "since-checkpoint", "", "file with a checkpoint: prove that the log has only grown since then")
}

// exportTo writes a bundle to standard output or to a file. The file is complete or
// does not appear.
func exportTo(ctx context.Context, std IO, out string, a *datadir.Archive, sel audit.Selection) (audit.ExportReport, error) {
	if out == "-" {
		return audit.Export(ctx, std.Out, a.Source, sel)
	}
	var done audit.ExportReport
	err := durable.Stream(out, func(f io.Writer) (err error) {
		w := bufio.NewWriterSize(f, 1<<20)
		done, err = audit.Export(ctx, w, a.Source, sel)
		return errors.Join(err, w.Flush())
	})
	return done, err
}

func auditVerify(replay bool) func(*command) {
	return func(c *command) {
		var trust string
		c.answer = func(args []string) (answer, error) {
			o, err := verifyOptions(trust)
			if err != nil {
				return answer{}, err
			}
			r, closeAll, err := openBundle(c.std, args[0])
			if err != nil {
				return answer{}, malformed(err)
			}
			defer closeAll()
			var done func()
			o.Replay = replay
			o.Progress, done = c.bar()
			report, err := audit.Verify(c.Context(), r, o)
			done()
			if err != nil {
				return answer{}, malformed(err)
			}
			a := answer{data: report, text: report.String(), end: unless(report.OK, "not valid")}
			if report.OK && trust == "" {
				fmt.Fprint(c.std.Err, "without --trust nothing says whose log this is: anybody can make such a bundle. The operator of the log prints the trust file: writ audit trust > trust.json\n")
				a.end = silent("not anchored")
			}
			return a, nil
		}
		c.Flags().StringVar(&trust, "trust", "", "trust file: the pinned root key and log origin (see writ audit trust)")
	}
}

// verifyOptions reads a trust file; empty: none.
func verifyOptions(trust string) (o audit.Options, err error) {
	if trust != "" {
		raw, err := readFile(trust)
		if err != nil {
			return o, err
		}
		if o.Trust, err = audit.ReadTrust(raw); err != nil {
			return o, malformed(err)
		}
	}
	return o, nil
}

// openBundle opens a file or standard input, and decompresses gzip.
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

func auditTrust(c *command) {
	c.dataFlag()
	c.answer = func([]string) (answer, error) { return c.trust() }
}

// trust is the trust file of the data directory's log.
func (c *command) trust() (said answer, err error) {
	err = c.archive(func(a *datadir.Archive) (err error) {
		said, err = document(audit.NewTrust(a.Root))
		return err
	})
	return said, err
}
