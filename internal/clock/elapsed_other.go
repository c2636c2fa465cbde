//go:build !linux

package clock

import "time"

// Elapsed is time since the process started.
func Elapsed() time.Duration { return time.Since(began) }

var began = time.Now()
