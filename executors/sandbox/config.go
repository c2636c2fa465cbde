package sandbox

import "runtime"

// DefaultWorkers is the number of prewarmed workers.
const DefaultWorkers = 2

// Config is how to open a Sandbox. The zero value works.
type Config struct {
	// Dir is where runtimes are kept, about 50 MB each. If it is empty, or
	// boxes of root could not walk to it, a directory of this user below the
	// system's temporary directory takes its place.
	Dir string

	// Python is the interpreter to copy; empty means the first usable python3
	// in PATH.
	Python string

	// Drivers are the only ones tried, in this order; empty means all,
	// strongest first. A server that pins its isolation names one.
	Drivers []string

	// Limits of jobs that set none, and of the prewarmed workers.
	Limits Limits

	// Workers is the number of Pythons kept waiting for a script. 0 means
	// DefaultWorkers, negative none.
	Workers int

	// Preload are modules that a worker imports while it waits. Nil means
	// json and re.
	Preload []string

	// Concurrency bounds the runs at one time; others wait. 0 means the number
	// of processors, but at least 2.
	Concurrency int
}

func (c Config) normalize() (Config, error) {
	var err error
	if c.Limits, err = c.Limits.normalize(); err != nil {
		return Config{}, err
	}
	if len(c.Drivers) == 0 {
		c.Drivers = DriverNames()
	}
	fill(&c.Workers, DefaultWorkers)
	c.Workers = max(c.Workers, 0)
	if c.Preload == nil {
		c.Preload = []string{"json", "re"}
	}
	fill(&c.Concurrency, max(2, runtime.NumCPU()))
	return c, nil
}
