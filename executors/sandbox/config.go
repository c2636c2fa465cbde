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

	// Driver is the only one tried. Empty means all, strongest first, down to Minimum or, if that
	// is empty too, the weakest there is.
	Driver, Minimum string
	tried           []string // set by normalize

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
	if c.tried, err = c.drivers(); err != nil {
		return Config{}, err
	}
	c.Workers = max(cmp.Or(c.Workers, DefaultWorkers), 0)
	return c, nil
}

// drivers are those to be tried, in this order.
func (c Config) drivers() ([]string, error) {
	known, name := DriverNames(), cmp.Or(c.Driver, c.Minimum)
	i := slices.Index(known, name)
	switch {
	case name == "":
		return known, nil
	case i < 0:
		return nil, fmt.Errorf("sandbox: unknown driver %q", name)
	case c.Driver != "":
		return known[i : i+1], nil
	}
	return known[:i+1], nil
}
