package sandbox

import (
	"cmp"
	"fmt"
	"slices"
)

// DefaultWorkers is the number of prewarmed workers.
const DefaultWorkers = 2

// Config is how to open a Sandbox. The zero value works.
type Config struct {
	// Dir is the directory of runtimes, about 50 MB each. If it is empty, or if
	// sandboxes of root could not reach it, a directory of this user below the
	// system's temporary directory takes its place.
	Dir string

	// Python is the interpreter to copy; empty means the first usable python3
	// in PATH.
	Python string

	// Drivers are the only ones tried, in this order; empty means all, strongest
	// first.
	Drivers []string

	// Minimum is the weakest driver accepted: those after it in DriverNames are
	// not tried. Empty means the weakest there is.
	Minimum string

	// Limits of jobs that set none, and of the prewarmed workers.
	Limits Limits

	// Workers is the number of idle Pythons that wait for a script. 0 means
	// DefaultWorkers, negative none. None is started while there are runs for
	// all processors.
	Workers int

	// Concurrency bounds the runs at one time; others wait. 0 means two more than the processors of
	// this process's control group, limited by its memory.
	Concurrency int
}

func (c Config) normalize() (Config, error) {
	var err error
	if c.Limits, err = c.Limits.normalize(); err != nil {
		return Config{}, err
	}
	if c.Concurrency < 0 {
		return Config{}, fmt.Errorf("sandbox: negative concurrency")
	}
	if c.Drivers, err = atLeast(c.Drivers, c.Minimum); err != nil {
		return Config{}, err
	}
	c.Workers = max(cmp.Or(c.Workers, DefaultWorkers), 0)
	return c, nil
}

// atLeast are the drivers named, all if none is, without those weaker than
// minimum.
func atLeast(named []string, minimum string) ([]string, error) {
	known := DriverNames()
	if minimum != "" {
		i := slices.Index(known, minimum)
		if i < 0 {
			return nil, fmt.Errorf("sandbox: unknown driver %q", minimum)
		}
		known = known[:i+1]
	}
	if len(named) == 0 {
		return known, nil
	}
	var order []string
	for _, name := range named {
		if !slices.Contains(DriverNames(), name) {
			return nil, fmt.Errorf("sandbox: unknown driver %q", name)
		}
		if slices.Contains(known, name) {
			order = append(order, name)
		}
	}
	if len(order) == 0 {
		return nil, fmt.Errorf("sandbox: none of the drivers %q is as strong as %q", named, minimum)
	}
	return order, nil
}
