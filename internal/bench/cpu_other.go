//go:build !unix

package bench

import "time"

var began = time.Now()

// cpuTime is the time that has passed: where the processors' time is not told,
// a run should be the only one on the machine.
func cpuTime() time.Duration { return time.Since(began) }
