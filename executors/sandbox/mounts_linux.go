//go:build amd64 || arm64

package sandbox

import (
	"strconv"

	"golang.org/x/sys/unix"
)

// mountsHeld is the maximum number of mount namespaces of ended sandboxes that wait for release.
// Each still has its scratch, which takes memory.
const mountsHeld = 4

// mounts releases the mount namespaces of sandboxes after their runs.
//
// The kernel destroys a namespace when its last holder releases it, and then waits
// for every processor, for one namespace after the other. If the sandbox is the last
// holder, its end waits, and the result with it. So a descriptor holds the namespace,
// and a goroutine closes it.
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

// hold holds the mount namespace of a sandbox's process. Call release once, after the process
// ended. If the machine does not permit holding the namespace, the end of the sandbox is slower.
func (m *mounts) hold(pid int) (release func()) {
	fd, err := unix.Open("/proc/"+strconv.Itoa(pid)+"/ns/mnt", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return func() {}
	}
	return func() { m.ended <- fd }
}

// close returns when all are released. No hold may follow.
func (m *mounts) close() {
	close(m.ended)
	<-m.done
}
