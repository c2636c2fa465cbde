//go:build amd64 || arm64

package sandbox

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// host has the state that the drivers of one Sandbox share.
type host struct {
	runtime runtimeDir
	scratch *scratch
	spawner *spawner // of sandboxes in the network of the host
	offline *spawner // of sandboxes in none
	ids     *idRange // nil if not root
	mounts  *mounts
	groups  *groups // nil: there are none to be had
}

// openHost prepares what the drivers share.
func openHost(ctx context.Context, cfg Config) (*host, error) {
	base, err := chooseBase(cfg.Dir)
	if err != nil {
		return nil, err
	}
	sweepBase(base, time.Now())
	h := &host{}
	if h.runtime, err = findRuntime(ctx, base, cfg.Python); err != nil {
		return nil, err
	}
	if os.Geteuid() == 0 {
		if h.ids, err = newIDRange(); err != nil {
			return nil, err
		}
	}
	if h.scratch, err = newScratch(h.runtime.path); err != nil {
		return nil, err
	}
	h.spawner, h.offline, h.mounts, h.groups = newSpawner(false), newSpawner(true), newMounts(), openGroups()
	return h, nil
}

func (h *host) close() error {
	h.spawner.close()
	h.offline.close()
	h.mounts.close()
	return h.scratch.close()
}

// idRange allocates uids (and equal gids) that no account and no other run on this
// machine has, so that no sandbox shares an owner with anything.
type idRange struct {
	base, size int64
	counter    atomic.Int64
}

// Ranges above those that distributions and systemd give to accounts and
// containers; the second for a container that maps only 65536 ids.
var (
	wideIDs   = [2]int64{1_900_000_000, 1 << 24}
	narrowIDs = [2]int64{40_000, 20_000}
)

func newIDRange() (*idRange, error) {
	raw, err := os.ReadFile("/proc/self/uid_map")
	if err != nil {
		return nil, err
	}
	for _, r := range [][2]int64{wideIDs, narrowIDs} {
		if mapped(string(raw), r[0], r[1]) {
			ids := &idRange{base: r[0], size: r[1]}
			// So that another process begins elsewhere.
			ids.counter.Store(rand.Int64N(r[1])) //nolint:gosec // G404: no secret
			return ids, nil
		}
	}
	return nil, fmt.Errorf("no free uids are mapped into this container")
}

func (r *idRange) next() int {
	return int(r.base + r.counter.Add(1)%r.size)
}

// mapped reports whether one line of a uid_map covers ids first to first+n-1.
func mapped(uidMap string, first, n int64) bool {
	for line := range strings.Lines(uidMap) {
		var inside, outside, size int64
		if _, err := fmt.Sscan(line, &inside, &outside, &size); err != nil {
			continue
		}
		if first >= inside && first+n <= inside+size {
			return true
		}
	}
	return false
}

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
