package cli

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"aob.dev/writ/internal/config"
	"aob.dev/writ/internal/datadir"
	"aob.dev/writ/internal/durable"
)

// command is a row of the command line, made for one run of the program.
type command struct {
	*cobra.Command
	std    IO
	url    string // --url
	key    string // --key: an API key
	place  string // --skill-key: of the caller's own key for skill servers
	signer string // --signer: the file of a private key
	dir    string // --data
	tenant string // --tenant
	asJSON bool   // --json
	out    string // --out

	ids *idSource // looks up a prefix in the first argument; nil: that is not an id

	// A row sets one of these. answer is for a command with one answer, and declares --json. run
	// prints by itself. An error of either is a refusal, unless its exit code says otherwise.
	answer func(args []string) (answer, error)
	run    func(args []string) error

	// stands returns the fault of the data directory that the command needs, before anything is
	// changed or created; nil: it needs none.
	stands func() error
}

// answer is the output of a command.
type answer struct {
	data any    // with --json
	text string // else, to standard output
	note string // and to standard error
	none string // likewise, where text is empty
	end  error  // returned after all is printed; nil: exit 0
}

// document is an answer that is one JSON document for people, too.
func document(v any) (answer, error) {
	var text strings.Builder
	err := printJSON(&text, v)
	return answer{data: v, text: text.String()}, err
}

// command makes the row's command and its subcommands.
func (r row) command(std IO) *cobra.Command {
	c := &command{std: std, Command: &cobra.Command{Use: r.use, Short: r.short, Args: r.args}}
	for _, sub := range r.group {
		c.AddCommand(sub.command(std))
	}
	if r.make == nil {
		c.Args, c.RunE = oneOfThese, help
		return c.Command
	}
	if c.Args == nil {
		c.Args = named(r.use)
	}
	r.make(c)
	if c.answer != nil {
		c.jsonFlag()
		c.run = func(args []string) error {
			a, err := c.answer(args)
			if err == nil {
				err = c.print(a)
			}
			return err
		}
	}
	if c.Flags().Lookup("json") != nil && c.Flags().Lookup("out") == nil { // else it names a file that the command makes
		c.run = c.toFile(c.run)
	}
	if c.ids != nil {
		c.ValidArgsFunction = firstWord(c.completes(c.idWords(c.ids)))
	}
	c.RunE = func(_ *cobra.Command, args []string) error {
		err := c.standing()
		if err == nil && c.ids != nil {
			args = slices.Clone(args)
			args[0], err = c.wholeID(args[0], c.ids)
		}
		if err == nil {
			err = c.run(args)
		}
		var exit *exitError
		if err != nil && !errors.As(err, &exit) {
			err = &exitError{code: ExitNo, err: err}
		}
		return err
	}
	return c.Command
}

func (c *command) standing() error {
	if c.stands == nil {
		return nil
	}
	if err := c.stands(); err != nil {
		return malformed(err)
	}
	return nil
}

// outFlag declares the file that a command writes. It is complete, or does not appear.
func (c *command) outFlag(file, help string) {
	c.Flags().StringVarP(&c.out, "out", "o", file, help)
}

// toFile declares the file for what a command prints, in the place of standard output. A command that
// fails before it prints leaves the file alone.
func (c *command) toFile(run func(args []string) error) func(args []string) error {
	file := c.Flags().StringP("out", "o", "", "file for the output (default: standard output)")
	return func(args []string) (err error) {
		if *file == "" {
			return run(args)
		}
		cannot := durable.Stream(*file, func(w io.Writer) error {
			to := &printedTo{Writer: w}
			c.std.Out = to
			if err = run(args); !to.begun {
				return err
			}
			return nil
		})
		return cmp.Or(err, cannot)
	}
}

// printedTo knows whether something was printed.
type printedTo struct {
	io.Writer
	begun bool
}

func (p *printedTo) Write(text []byte) (int, error) {
	p.begun = true
	return p.Writer.Write(text)
}

// print prints an answer.
func (c *command) print(a answer) (err error) {
	if c.asJSON {
		err = printJSON(c.std.Out, a.data)
	} else {
		if a.text == "" && a.end == nil && (a.note == "" || a.none != "") {
			a.note += cmp.Or(a.none, "nothing to show") + "\n"
		}
		fmt.Fprint(c.std.Err, a.note)
		_, err = io.WriteString(c.std.Out, a.text)
	}
	if err != nil {
		return err
	}
	return a.end
}

// jsonFlag is for commands that print several documents, or print bit by bit, or one that is
// JSON in any case. All commands with an answer have it already.
func (c *command) jsonFlag() { c.Flags().BoolVar(&c.asJSON, "json", false, "print JSON") }

// dataFlag declares the flag for a data directory, which must exist.
func (c *command) dataFlag() {
	c.stands = func() error { return datadir.Exists(c.dir) }
	c.Flags().StringVar(&c.dir, "data", config.Default().Data, "data directory; a writ may be running on it")
}

// archive opens the data directory for fn.
func (c *command) archive(fn func(*datadir.Archive) error) error {
	a, err := datadir.OpenArchive(c.Context(), c.dir)
	if err != nil {
		return malformed(err)
	}
	return errors.Join(fn(a), a.Close())
}

// ofRecord is a command that reads the record of a data directory.
func (c *command) ofRecord(do func(in *datadir.Archive, args []string) (answer, error)) {
	c.dataFlag()
	c.answer = func(args []string) (said answer, err error) {
		err = c.archive(func(in *datadir.Archive) error {
			said, err = do(in, args)
			return err
		})
		return said, err
	}
}

// input reads a file, or standard input if args has no file or "-".
func (c *command) input(args []string) ([]byte, error) {
	r := c.std.In
	if len(args) > 0 && args[0] != "-" {
		f, err := os.Open(args[0])
		if err != nil {
			return nil, malformed(err)
		}
		defer f.Close()
		r = f
	}
	raw, err := io.ReadAll(io.LimitReader(r, maxInput))
	if err != nil {
		err = malformed(err)
	}
	return raw, err
}

// maxInput bounds the data that input reads, in bytes.
const maxInput = 1 << 20

// readFile reads a file that the user named.
func readFile(path string) ([]byte, error) {
	raw, err := os.ReadFile(path) //nolint:gosec // G304: the user names the file
	if err != nil {
		err = malformed(err)
	}
	return raw, err
}

// mustGive makes flags required.
func (c *command) mustGive(flags ...string) {
	for _, name := range flags {
		_ = c.MarkFlagRequired(name) // the flag exists
	}
}

// since declares a flag for a time: RFC 3339, or a duration before now.
func (c *command) since(at *time.Time, name, help string) {
	c.Flags().Var(&timeFlag{at: at, ago: true}, name, help)
}

// timeFlag reads a time into at.
type timeFlag struct {
	at   *time.Time
	ago  bool // a duration before now is allowed, too
	text string
}

func (f *timeFlag) String() string { return f.text }
func (f *timeFlag) Type() string   { return "string" }

// Set implements pflag.Value.
func (f *timeFlag) Set(s string) (err error) {
	f.text = s
	if f.ago {
		*f.at, err = sinceTime(s, time.Now())
	} else if *f.at, err = time.Parse(time.RFC3339, s); err != nil {
		err = fmt.Errorf("%q is not an RFC 3339 time", s)
	}
	return err
}

// sinceTime reads a time, or a duration before now, also in days.
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
