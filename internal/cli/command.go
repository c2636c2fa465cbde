package cli

import (
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"

	"aob.dev/writ/internal/config"
	"aob.dev/writ/internal/datadir"
)

// command is a row of the command line, made for one run of the program.
type command struct {
	*cobra.Command
	std      IO
	url, key string // --url and --key
	dir      string // --data
	tenant   string // --tenant
	asJSON   bool   // --json

	// A row sets one of these. answer is for a command with one answer, and declares
	// --json. run prints by itself. An error of either is a no, unless it says
	// otherwise.
	answer func(args []string) (answer, error)
	run    func(args []string) error

	// stands says what is wrong with the data directory that the command needs, before anything
	// is done or made; nil: it needs none.
	stands func() error
}

// answer is what a command says.
type answer struct {
	data any    // with --json
	text string // else, to standard output
	note string // and to standard error
	end  error  // returned after all is printed; nil: exit 0
}

// command makes the row, and what is below it.
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
				err = a.print(std, c.asJSON)
			}
			return err
		}
	}
	c.RunE = func(_ *cobra.Command, args []string) error {
		err := c.standing()
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

func (a answer) print(std IO, asJSON bool) (err error) {
	if asJSON {
		err = printJSON(std.Out, a.data)
	} else {
		fmt.Fprint(std.Err, a.note)
		_, err = io.WriteString(std.Out, a.text)
	}
	if err != nil {
		return err
	}
	return a.end
}

// unless is the end of a command whose answer shows by itself that it is no.
func unless(ok bool, why string) error {
	if ok {
		return nil
	}
	return silent(why)
}

// silent is exit 1 without a further message.
func silent(why string) error { return &exitError{code: ExitNo, err: errors.New(why), silent: true} }

// usage is an error for an impossible value of a flag or argument.
func usage(err error) *exitError { return &exitError{code: ExitUsage, err: err} }

// jsonFlag is for commands that print several documents, or print bit by bit. All
// commands with an answer have it already.
func (c *command) jsonFlag() { c.Flags().BoolVar(&c.asJSON, "json", false, "print JSON") }

// dataFlag names a data directory, which must be one.
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

// maxInput bounds what input reads, in bytes.
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
