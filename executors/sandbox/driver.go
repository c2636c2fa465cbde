package sandbox

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	"aob.dev/writ/internal/durable"
)

// Names of the drivers, strongest first: the order in which Open tries them.
const (
	Namespaces = "namespaces"
	Landlock   = "landlock"
)

// DriverNames are all drivers, strongest first.
func DriverNames() []string {
	return []string{Namespaces, Landlock}
}

// Profile has the parameters of a sandbox, before it gets a script.
type Profile struct {
	Limits  Limits   // normalized
	Room    int64    // bytes of scratch, the input included
	Preload []string // modules imported before the script arrives
}

// SurveyResult is the result of Survey.
type SurveyResult struct {
	Driver  string           // the driver that Open would use; empty: none
	Python  string           // version
	Refused map[string]error // drivers that do not hold here, and why
}

// RuntimeDir is the runtime that Prepare found or made.
type RuntimeDir struct {
	Path   string // of the runtime directory
	Python string // version

	// Bare begins a command that executes this Python without a sandbox; Python's own
	// arguments follow. It must not run scripts of a model.
	Bare []string
}

// Uncovered lists the risks that a driver does not cover, as in docs/sandbox.md.
func Uncovered(driver string) string {
	const kernel = "a bug of the host's kernel, which it shares"
	switch driver {
	case Namespaces:
		return kernel
	case Landlock:
		return kernel + "; the network, but for seccomp, which refuses every socket; it can tell which paths exist; for a plain user only memory bounds its threads"
	}
	return ""
}

// NoWeaker refuses a driver that is weaker than the one that a file of the data directory names,
// unless the operator has chosen it: another kernel must not weaken the sandbox unnoticed. Else
// the file names this one. A crash leaves the old name.
func NoWeaker(path, driver string, chosen bool) error {
	if chosen {
		return nil
	}
	raw, err := os.ReadFile(path) //nolint:gosec // G304: a file of the data directory
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	before, known := strings.TrimSpace(string(raw)), DriverNames()
	if before != "" && slices.Index(known, before) < slices.Index(known, driver) { // an unknown one counts as stronger
		return fmt.Errorf("this machine has no better sandbox than %s, and this data directory had %s: mend the machine, or accept it with --sandbox %s", driver, before, driver)
	}
	if before == driver {
		return nil
	}
	return durable.Write(path, []byte(driver+"\n"))
}
