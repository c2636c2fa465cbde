package sandbox

import "context"

// Names of the drivers, strongest first: the order in which Open tries them.
const (
	Namespaces = "namespaces"
	Landlock   = "landlock"
)

// DriverNames are all drivers, strongest first.
func DriverNames() []string {
	return []string{Namespaces, Landlock}
}

// Profile is what a sandbox is built with, before it gets a script.
type Profile struct {
	Limits  Limits   // normalized
	Room    int64    // bytes of scratch, the input included
	Preload []string // modules imported before the script arrives
}

// Driver builds sandboxes of one kind.
type Driver interface {
	Name() string

	// Probe runs a canary script in a real sandbox. An error names the layer that is
	// missing or did not hold; then the driver must not be used.
	Probe(ctx context.Context) error

	// Start begins to build a sandbox and returns without waiting for it: Run of
	// the sandbox reports a failure.
	Start(p Profile) (*Instance, error)
}

// Surveyed is the result of Survey.
type Surveyed struct {
	Driver  string           // what Open would take; empty: none
	Python  string           // version
	Refused map[string]error // drivers that do not hold here, and why
}

// Prepared is the runtime that Prepare found or made.
type Prepared struct {
	Path   string // of the runtime directory
	Python string // version

	// Bare begins a command that executes this Python without a sandbox; Python's own
	// arguments follow. It must not run scripts of a model.
	Bare []string
}

// Uncovered is what a driver does not protect from, as in docs/sandbox.md.
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
