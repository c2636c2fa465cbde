package sandbox

import "context"

// Names of the drivers, strongest first: the order in which Open tries them.
const (
	GVisor         = "gvisor" // only where it is asked for: see Config
	Namespaces     = "namespaces"
	Rootful        = "rootful"
	LandlockChroot = "landlock+chroot"
	Landlock       = "landlock"
)

// DriverNames are all drivers, strongest first.
func DriverNames() []string {
	return []string{GVisor, Namespaces, Rootful, LandlockChroot, Landlock}
}

// Profile is what a box is built with, before it gets a script.
type Profile struct {
	Limits  Limits // normalized
	Room    int64  // bytes of scratch, the input included
	Preload []string
}

// Driver builds boxes of one kind.
type Driver interface {
	Name() string

	// Probe runs a canary script in a real box. An error says which layer is
	// missing or did not hold; then the driver must not be used.
	Probe(ctx context.Context) error

	// Start builds a box and returns when Python in it waits for a script.
	Start(ctx context.Context, p Profile) (*Box, error)
}
