package cli

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

// answer is what a command says.
type answer struct {
	data any    // with --json
	text string // else, to standard output
	note string // and to standard error
	end  error  // returned once all is said; nil: exit 0
}

// answering gives a command --json, and prints what run answers. An error of run
// is a no, unless it says otherwise. flags add those that it has besides.
func answering(std IO, cmd *cobra.Command, run func(cmd *cobra.Command, args []string) (answer, error), flags ...func(*cobra.Command)) *cobra.Command {
	for _, add := range flags {
		add(cmd)
	}
	var asJSON bool
	jsonFlag(cmd, &asJSON)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		a, err := run(cmd, args)
		if err == nil {
			err = a.print(std, asJSON)
		}
		var exit *exitError
		if err == nil || errors.As(err, &exit) {
			return err
		}
		return no(err)
	}
	return cmd
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

// unless is the end of a command whose answer says itself that it is no.
func unless(ok bool, why string) error {
	if ok {
		return nil
	}
	return silent(why)
}

// silent is exit 1 with nothing more to say.
func silent(why string) error { return &exitError{code: ExitNo, err: errors.New(why), silent: true} }

// usage is a value of a flag or an argument that cannot be.
func usage(err error) *exitError { return &exitError{code: ExitUsage, err: err} }

// aligned are lines whose cells stand below each other.
func aligned(print func(t io.Writer)) string {
	var b strings.Builder
	t := table(&b)
	print(t)
	flush(t)
	return b.String()
}

// jsonFlag is for commands whose answer is more than one document, or comes bit by
// bit; answering gives it to all others.
func jsonFlag(cmd *cobra.Command, asJSON *bool) {
	cmd.Flags().BoolVar(asJSON, "json", false, "print data")
}

// mustGive makes flags required.
func mustGive(cmd *cobra.Command, flags ...string) {
	for _, name := range flags {
		_ = cmd.MarkFlagRequired(name) // the flag exists
	}
}

// timeFlag reads a time into at: RFC 3339, or so long before now.
type timeFlag struct {
	at   *time.Time
	ago  bool // a duration before now can be given
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
