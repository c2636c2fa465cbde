// Package cli is the command line: flags, printing, exit codes. Standard output
// is data, standard error is messages.
package cli

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"runtime/debug"
	"strings"
	"syscall"
	"time"

	"github.com/rogpeppe/go-internal/txtar"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/term"

	"aob.dev/writ/intents"
	"aob.dev/writ/internal/client"
	"aob.dev/writ/internal/logging"
)

// Exit codes.
const (
	ExitOK        = 0
	ExitNo        = 1 // a well-formed no: refused, invalid, failed
	ExitUsage     = 2 // unknown command or flag, impossible value
	ExitMalformed = 3 // input that cannot be read
)

// IO is what a command may touch.
type IO struct {
	In       io.Reader
	Out, Err io.Writer
	Env      func(string) string
}

// exitError carries an exit code; it is printed unless silent.
type exitError struct {
	code   int
	err    error
	silent bool
}

func (e *exitError) Error() string { return e.err.Error() }
func (e *exitError) Unwrap() error { return e.err }

func malformed(err error) error { return &exitError{code: ExitMalformed, err: err} }

// Main runs one command and returns its exit code.
func Main(ctx context.Context, args []string, std IO) int {
	root := &cobra.Command{
		Use: "writ", Short: "Signed intents between AI agents and the real world",
		Long: "writ lets AI agents act without trusting them. An agent can only sign orders.\n" +
			"A router checks each order, records it for good, and has it carried out.",
		SilenceErrors: true, SilenceUsage: true, Args: oneOfThese, RunE: help,
	}
	root.Version = version()
	root.SetVersionTemplate("writ {{.Version}}\n")
	root.SetArgs(args)
	root.SetIn(std.In)
	root.SetOut(std.Out)
	root.SetErr(std.Err)
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		return usage(fmt.Errorf("%w%s\nsee: %s --help", err, flagMeant(c, err), c.CommandPath()))
	})
	var at target
	root.PersistentPreRunE = func(cmd *cobra.Command, _ []string) (err error) { //nolint:contextcheck // a command has its context
		at, err = aim(cmd, std)
		return err
	}
	addCommands(root, std)
	cmd, err := root.ExecuteContextC(ctx)
	if err == nil {
		return ExitOK
	}
	var exit *exitError
	if !errors.As(err, &exit) {
		// Commands return an exitError; this is cobra's own, about commands and arguments.
		exit = usage(fmt.Errorf("%w\nsee: %s --help", err, cmd.CommandPath()))
	}
	if !exit.silent {
		fmt.Fprintln(std.Err, "writ:", printable(exit.err.Error()))
		if more := denied(exit.err); more != "" {
			fmt.Fprintln(std.Err, printable(more))
		}
		if hint := at.unanswered(); hint != "" && errors.Is(exit.err, client.ErrNoAnswer) {
			fmt.Fprintln(std.Err, hint)
		}
	}
	return exit.code
}

// helpTexts are what --help says of commands beyond their lines, by their paths.
//
//go:embed help.txt
var helpTexts []byte

func addCommands(root *cobra.Command, std IO) {
	for _, r := range commands() {
		root.AddCommand(r.command(std))
	}
	for _, f := range txtar.Parse(helpTexts).Files {
		if c, _, err := root.Find(strings.Fields(f.Name)); err == nil {
			c.Long = strings.TrimSuffix(string(f.Data), "\n")
		}
	}
}

// help is what a group does. With it, cobra refuses words that name none of the group's
// commands instead of printing help and exiting 0.
func help(cmd *cobra.Command, _ []string) error { return cmd.Help() }

// oneOfThese refuses words that name no command of a group, and names the nearest one.
func oneOfThese(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	var known []string
	for _, c := range cmd.Commands() {
		if c.IsAvailableCommand() {
			known = append(append(known, c.Name()), c.Aliases...)
		}
	}
	return fmt.Errorf("unknown command %q for %q%s", args[0], cmd.CommandPath(), meant(args[0], known))
}

// flagMeant is the nearest flag to an unknown one.
func flagMeant(cmd *cobra.Command, err error) string {
	var unknown *pflag.NotExistError
	if !errors.As(err, &unknown) {
		return ""
	}
	var known []string
	for _, set := range []*pflag.FlagSet{cmd.Flags(), cmd.InheritedFlags()} {
		set.VisitAll(func(f *pflag.Flag) { known = append(known, "--"+f.Name) })
	}
	return meant("--"+unknown.GetSpecifiedName(), known)
}

// logger writes messages to standard error: text for a terminal, JSON elsewhere.
func logger(std IO, level string) *slog.Logger {
	var l slog.Level
	if err := l.UnmarshalText([]byte(level)); err != nil {
		l = slog.LevelInfo
	}
	return logging.New(std.Err, l, terminal(std.Err))
}

// lastLines is how long a process that ends waits for whoever reads its log.
const lastLines = time.Second

// served is standard error of a process that serves: nothing waits for whoever reads it, and
// the process outlives the reader. done writes what is left.
func served(std IO, level string) (_ IO, dropped func() int64, done func()) {
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE) // a write then fails, and does not end the process
	told := logger(std, level)
	a := logging.NewAside(std.Err, func(n int64) {
		told.Warn("lines of the log were dropped, since nobody read it in time", slog.Int64("lines", n))
	})
	std.Err = aside{a, terminal(std.Err)}
	slog.SetDefault(logger(std, level)) // of libraries that have no logger of ours
	return std, a.Dropped, func() { a.Close(lastLines) }
}

// aside remembers whether a person looks on.
type aside struct {
	*logging.Aside
	terminal bool
}

func terminal(w io.Writer) bool {
	if a, ok := w.(aside); ok {
		return a.terminal
	}
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// paint colours text for a terminal, unless NO_COLOR is set.
type paint struct{ on bool }

func painter(std IO, w io.Writer) paint { return paint{terminal(w) && std.Env("NO_COLOR") == ""} }

func (p paint) wrap(code, s string) string {
	if !p.on {
		return s
	}
	return "\x1b[" + code + "m" + s + "\x1b[0m"
}

func (p paint) bold(s string) string  { return p.wrap("1", s) }
func (p paint) dim(s string) string   { return p.wrap("2", s) }
func (p paint) green(s string) string { return p.wrap("32", s) }
func (p paint) red(s string) string   { return p.wrap("31", s) }

// explain says how to see why an order was refused.
func explain(intentID string) string { return "why: writ policy explain " + printable(intentID) }

// denied names the order that an error refuses and says how to see why. If the refusal
// is not in the record it is empty.
func denied(err error) string {
	var p *client.Error
	if !errors.As(err, &p) || p.IntentID == "" {
		return ""
	}
	switch p.Code {
	case intents.PolicyDenied, intents.RBACForbidden:
	default:
		if p.Position == nil {
			return ""
		}
	}
	return fmt.Sprintf("order %s\n%s", printable(p.IntentID), explain(p.IntentID))
}

func versionCommand(c *command) {
	c.run = func([]string) error {
		_, err := fmt.Fprintln(c.std.Out, "writ", version())
		return err
	}
}

// version of the program and of its Go.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "(unknown)"
	}
	return info.Main.Version + " " + info.GoVersion
}
