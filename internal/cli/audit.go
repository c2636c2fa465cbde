package cli

import (
	"bufio"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math"
	"os"
	"slices"
	"strings"
	"time"

	"aob.dev/writ/audit"
	"aob.dev/writ/internal/clock"
	"aob.dev/writ/internal/datadir"
	"aob.dev/writ/internal/durable"
	"aob.dev/writ/internal/visible"
	"aob.dev/writ/upkeep"
)

func auditShow(c *command) {
	c.ids = &recordedIntents
	c.ofRecord(func(in *datadir.Archive, args []string) (answer, error) {
		found, err := audit.Find(c.Context(), in.Records, args[0])
		if err != nil {
			return answer{}, err
		}
		text, err := shownText(found)
		return answer{data: found, text: text}, err
	})
}

func shownText(found []audit.RecordView) (string, error) {
	var b strings.Builder
	for _, s := range found {
		fmt.Fprintln(&b, shownLine(s))
		if s.Intent != nil {
			if err := printJSON(&b, s.Intent); err != nil {
				return "", err
			}
		}
		for _, name := range slices.Sorted(maps.Keys(s.Parts)) {
			if name != "envelope" && name != "grant" {
				fmt.Fprintf(&b, "%s: %s\n", name, visible.ProseJSON(s.Parts[name]))
			}
		}
		for _, name := range slices.Sorted(maps.Keys(s.Withheld)) {
			fmt.Fprintf(&b, "%s: withheld: it was erased\n", name)
		}
	}
	return b.String(), nil
}

// shownLine is a record in one line.
func shownLine(s audit.RecordView) string {
	what := s.Type
	if s.Target != nil {
		what = fmt.Sprintf("of %d", *s.Target)
	}
	return fmt.Sprintf("%6d  %s  %-8s  %-10s %-14s %-20s %s", s.Position, s.At, s.Kind, s.Tenant, what, s.Code, short(s.IntentID))
}

func auditProve(c *command) {
	c.ids = &recordedIntents
	c.ofRecord(func(a *datadir.Archive, args []string) (answer, error) {
		if err := a.AwaitCheckpoint(c.Context()); err != nil {
			return answer{}, err
		}
		p, err := audit.Prove(c.Context(), a.Source, args[0])
		if err == nil {
			err = p.Check(audit.NewTrust(a.Root))
		}
		if err != nil {
			return answer{}, err
		}
		return document(p)
	})
}

// tailPause is how long tail waits before it looks again.
const tailPause = 500 * time.Millisecond

func auditTail(c *command) {
	filter := c.filterFlags()
	var follow bool
	c.run = func([]string) error {
		if err := c.wholeIn(&filter.Plan, &recordedPlans); err != nil {
			return err
		}
		for next := int64(0); ; {
			err := c.archive(func(a *datadir.Archive) error {
				from := next
				next = a.Records.Next()
				found, err := c.printRecords(a, from, math.MaxInt, filter, nil)
				if err == nil && found == 0 && !follow && !c.asJSON {
					fmt.Fprintln(c.std.Err, "no record matches")
				}
				return err
			})
			if !follow || err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
			if err := clock.Sleep(c.Context(), tailPause); err != nil {
				return nil //nolint:nilerr // whoever follows has ended it
			}
		}
	}
	c.Flags().BoolVarP(&follow, "follow", "f", false, "wait for new records and print them")
}

// printShown writes a record as one line, of JSON or for people.
func printShown(w io.Writer, s audit.RecordView, asJSON bool) error {
	if !asJSON {
		_, err := fmt.Fprintln(w, shownLine(s))
		return err
	}
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	return enc.Encode(s)
}

func auditSearch(c *command) {
	filter := c.filterFlags()
	var limit int
	c.run = func(words []string) error {
		if limit < 1 {
			return usage(errors.New("--limit must be at least 1"))
		}
		filter.Words = words
		if err := c.wholeIn(&filter.Plan, &recordedPlans); err != nil {
			return err
		}
		return c.archive(func(a *datadir.Archive) error {
			show, done := c.bar()
			defer done()
			found, err := c.printRecords(a, 0, limit, filter, show)
			switch {
			case err == nil && found == 0:
				err = &exitError{code: ExitNo, err: errors.New("no record matches"), silent: c.asJSON}
			case err == nil && found > limit:
				fmt.Fprintf(c.std.Err, "the first %d of %d records that match; all: --limit %d\n", limit, found, found)
			}
			return err
		})
	}
	c.since(&filter.Since, "since", "only records from this RFC 3339 time, or from this long ago (7d, 12h)")
	c.since(&filter.Until, "until", "only records before this RFC 3339 time, or this long ago")
	c.Flags().IntVar(&limit, "limit", 100, "maximum number of records")
}

// filterFlags declares the flags of a command that prints some of the records.
func (c *command) filterFlags() *audit.Filter {
	c.dataFlag()
	c.jsonFlag()
	var f audit.Filter
	for _, x := range []struct {
		to         *string
		name, help string
	}{
		{&f.Tenant, "tenant", "only records of this tenant"},
		{&f.User, "user", "only intents of this user"},
		{&f.Type, "type", "only intents of this type"},
		{(*string)(&f.Code), "code", "only records with this code"},
		{(*string)(&f.Kind), "kind", "only records of this kind: intent, outcome, release, takeover, control"},
		{&f.Plan, "plan", "only intents of this plan"},
		{&f.Session, "session", "only intents of this session"},
	} {
		c.Flags().StringVar(x.to, x.name, "", x.help)
	}
	return &f
}

// printRecords prints the first records that match, one per line, and counts all that do. show,
// if not nil, receives the progress.
func (c *command) printRecords(a *datadir.Archive, from int64, limit int, filter *audit.Filter, show func(done, total int64)) (found int, err error) {
	for s, err := range audit.Read(c.Context(), a.Records, from) {
		if err != nil {
			return found, err
		}
		if show != nil && s.Position%1000 == 0 {
			show(s.Position, a.Records.Next())
		}
		if !filter.Wants(s) {
			continue
		}
		if found++; found > limit {
			continue
		}
		if err := printShown(c.std.Out, s, c.asJSON); err != nil {
			return found, err
		}
	}
	return found, nil
}

func auditFsck(c *command) {
	c.dataFlag()
	c.answer = func([]string) (answer, error) {
		show, done := c.bar()
		h, err := upkeep.Fsck(c.Context(), c.dir, show)
		done()
		if err != nil {
			return answer{}, malformed(err)
		}
		return answer{data: h, text: render("health", h), end: unless(h.OK, "not sound")}, nil
	}
}

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
			restore := audit.Roomy()
			defer restore()
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
