// Package cli is the command line: flags, printing, exit codes. Standard output
// is data, standard error is messages.
package cli

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"runtime/debug"
	"strings"

	"github.com/rogpeppe/go-internal/txtar"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Exit codes.
const (
	ExitOK        = 0
	ExitNo        = 1 // a well-formed no: refused, invalid, failed
	ExitUsage     = 2 // unknown command or flag, impossible value
	ExitMalformed = 3 // input that cannot be read
)

// IO has the streams and environment of a command.
type IO struct {
	In       io.Reader
	Out, Err io.Writer
	Env      func(string) string
}

// Main runs one command and returns its exit code.
func Main(ctx context.Context, args []string, std IO) int {
	root := &cobra.Command{
		Use: "writ", Short: "Signed intents between AI agents and the real world",
		Long: "writ lets AI agents act without trusting them. An agent can only sign intents.\n" +
			"A router checks each intent, records it for good, and has it carried out.",
		SilenceErrors: true, SilenceUsage: true, Args: oneOfThese, RunE: help,
	}
	root.Version = version()
	root.SetVersionTemplate("writ {{.Version}}\n")
	root.SetArgs(args)
	root.SetIn(std.In)
	root.SetOut(std.Out)
	root.SetErr(std.Err)
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		return usage(fmt.Errorf("%w%s%s", err, nearestFlag(c, err), usageOf(c)))
	})
	var at target
	root.PersistentPreRunE = func(cmd *cobra.Command, _ []string) (err error) { //nolint:contextcheck // a command has its context
		if err = complete(cmd); err == nil {
			at, err = aim(cmd, std)
		}
		return err
	}
	addCommands(root, std) //nolint:contextcheck // likewise
	cmd, err := root.ExecuteContextC(ctx)
	if err == nil {
		return ExitOK
	}
	var exit *exitError
	if !errors.As(err, &exit) {
		// Commands return an exitError; this is cobra's own, about commands and arguments.
		exit = usage(fmt.Errorf("%w%s", err, usageOf(cmd)))
	}
	exit.report(std, cmd, at)
	return exit.code
}

// helpTexts are the --help texts of commands beyond their short lines, by command path.
//
//go:embed help.txt
var helpTexts []byte

// exampleLines are commands as they may be typed; --help shows each with the command that it runs.
//
//go:embed examples.txt
var exampleLines string

func addCommands(root *cobra.Command, std IO) {
	for _, s := range sections() {
		root.AddGroup(&cobra.Group{ID: s.title, Title: s.title + ":"})
		for _, r := range s.rows {
			c := r.command(std)
			c.GroupID = s.title
			root.AddCommand(c)
		}
		root.SetHelpCommandGroupID(s.title) // the last
		root.SetCompletionCommandGroupID(s.title)
	}
	for line := range strings.Lines(exampleLines) {
		if c, _, err := root.Find(strings.Fields(line)[1:]); err == nil {
			c.Example = strings.TrimPrefix(c.Example+"\n  "+strings.TrimSpace(line), "\n")
		}
	}
	for _, f := range txtar.Parse(helpTexts).Files {
		if c, _, err := root.Find(strings.Fields(f.Name)); err == nil {
			c.Long = strings.TrimSuffix(string(f.Data), "\n")
		}
	}
}

// help is the action of a group. It makes cobra refuse words that name none of the group's commands
// instead of printing help and exiting 0.
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
	return fmt.Errorf("unknown command %q for %q%s", args[0], cmd.CommandPath(), didYouMean(args[0], known))
}

// nearestFlag is the nearest flag to an unknown one.
func nearestFlag(cmd *cobra.Command, err error) string {
	var unknown *pflag.NotExistError
	if !errors.As(err, &unknown) {
		return ""
	}
	if unknown.GetSpecifiedName() == "key" && cmd.Flags().Lookup("signer") != nil {
		return ": the file of a private key is --signer; --key is an API key"
	}
	var known []string
	for _, set := range []*pflag.FlagSet{cmd.Flags(), cmd.InheritedFlags()} {
		set.VisitAll(func(f *pflag.Flag) { known = append(known, "--"+f.Name) })
	}
	return didYouMean("--"+unknown.GetSpecifiedName(), known)
}

// version of the program and of its Go.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "(unknown)"
	}
	return info.Main.Version + " " + info.GoVersion
}
