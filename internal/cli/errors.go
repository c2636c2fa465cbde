package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"aob.dev/writ/intents"
	"aob.dev/writ/internal/client"
	"aob.dev/writ/internal/datadir"
)

// exitError carries an exit code; it is printed unless silent.
type exitError struct {
	code   int
	err    error
	silent bool
}

func (e *exitError) Error() string { return e.err.Error() }
func (e *exitError) Unwrap() error { return e.err }

func malformed(err error) error { return &exitError{code: ExitMalformed, err: err} }

// usage is an error for an impossible value of a flag or argument.
func usage(err error) *exitError { return &exitError{code: ExitUsage, err: err} }

// silent is exit 1 without a further message.
func silent(why string) error { return &exitError{code: ExitNo, err: errors.New(why), silent: true} }

// unless is the end of a command whose answer shows by itself that it is no.
func unless(ok bool, why string) error {
	if ok {
		return nil
	}
	return silent(why)
}

// report prints why a command failed, and what to do next. at is the writ that it used.
func (e *exitError) report(std IO, cmd *cobra.Command, at target) {
	if e.silent {
		return
	}
	var refused *client.Error
	if errors.As(e.err, &refused) && refused.Code == intents.Unauthorized {
		refused.Hint = "the key comes from " + at.Key.From + ": give another with --key or WRIT_API_KEY; an operator makes one: writ apikey create ID --user USER"
	}
	if refused != nil && refused.Hint == refused.Code.Info().SignerHint() && cmd.Parent().Name() != "intent" {
		refused.Hint = refused.Code.Info().Hint // the command has signed, nobody else
	}
	lines := []string{"writ: " + printable(absent(datadir.Rights(e.err)))}
	if more := denied(e.err); more != "" {
		lines = append(lines, printable(more))
	}
	if hint := at.unanswered(); hint != "" && errors.Is(e.err, client.ErrNoAnswer) {
		lines = append(lines, hint)
	}
	if see := "see: " + cmd.CommandPath() + " --help"; e.code == ExitUsage && !strings.Contains(lines[0], see) {
		lines = append(lines, see)
	}
	fmt.Fprintln(std.Err, strings.Join(lines, "\n"))
}

// absent is the text of an error. A missing file is named as people name it, with the directory
// that its path is relative to.
func absent(err error) string {
	text := err.Error()
	if !errors.Is(err, fs.ErrNotExist) {
		return text
	}
	var at *fs.PathError
	if !errors.As(err, &at) {
		return strings.Replace(text, ": "+fs.ErrNotExist.Error(), "", 1)
	}
	place := ""
	if here, err := os.Getwd(); err == nil && !filepath.IsAbs(at.Path) {
		place = " in " + here
	}
	return strings.Replace(text, at.Error(), at.Path+" does not exist"+place, 1)
}

// explain is the hint how to see why an intent was refused.
func explain(intentID string) string { return "why: writ policy explain " + printable(intentID) }

// denied names the intent that an error refuses and how to see why. If the refusal is not in the
// record, it is empty.
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
	return fmt.Sprintf("intent %s\n%s", printable(p.IntentID), explain(p.IntentID))
}
