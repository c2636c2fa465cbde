package failpoint

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
)

// armed is the point to die at, and how many times it is passed before.
var armed = sync.OnceValues(func() (Point, *atomic.Int64) {
	name, times, found := strings.Cut(os.Getenv(Variable), ":")
	left := new(atomic.Int64)
	left.Store(1)
	if found {
		n, err := strconv.ParseInt(times, 10, 64)
		if err != nil || n < 1 {
			panic(fmt.Sprintf("%s: %q is no number of times", Variable, times))
		}
		left.Store(n)
	}
	return Point(name), left
})

// begun reports whether passes count yet.
func begun() bool {
	file := os.Getenv(After)
	if file == "" {
		return true
	}
	_, err := os.Stat(file) //nolint:gosec // G703: the test that starts the process names the file
	return err == nil
}

// built is set by the linker where a program shall die.
var built string

// Hit kills the process if the program was linked for it and the environment names this point. It
// does not return then. The empty point is none.
func Hit(p Point) {
	if built == "" || p == "" {
		return
	}
	at, left := armed()
	if p != at || !begun() || left.Add(-1) != 0 {
		return
	}
	self, err := os.FindProcess(os.Getpid())
	if err == nil {
		err = self.Kill()
	}
	if err != nil {
		panic(fmt.Sprintf("%s: %v", Variable, err))
	}
	select {} // the signal is on its way
}
