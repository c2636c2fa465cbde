//go:build amd64 || arm64

package sandbox

import (
	"strconv"

	"golang.org/x/sys/unix"
)

// mountsHeld is how many mount namespaces of ended sandboxes may wait to be let go.
// Each still has its scratch, which takes memory.
const mountsHeld = 4

// mounts lets go of the mount namespaces of sandboxes after their runs.
//
// The kernel takes a namespace apart when the last that holds it lets go, and
// then waits for every processor, for one namespace after the other. If that is
// the sandbox, its end waits, and the result with it. So a descriptor holds the
// namespace meanwhile, and a goroutine closes it.
type mounts struct {
	ended chan int
	done  chan struct{}
}

// newMounts starts the goroutine; close ends it.
func newMounts() *mounts {
	m := &mounts{ended: make(chan int, mountsHeld), done: make(chan struct{})}
	go func() {
		defer close(m.done)
		for fd := range m.ended {
			_ = unix.Close(fd)
		}
	}()
	return m
}

// hold holds the mount namespace of a process that is a sandbox and returns what
// lets go of it, to be called once when the process ended. Where the machine does
// not permit to hold it, the end of the sandbox takes as long as it takes.
func (m *mounts) hold(pid int) (letGo func()) {
	fd, err := unix.Open("/proc/"+strconv.Itoa(pid)+"/ns/mnt", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return func() {}
	}
	return func() { m.ended <- fd }
}

// close returns when all are let go. No hold may follow.
func (m *mounts) close() {
	close(m.ended)
	<-m.done
}
