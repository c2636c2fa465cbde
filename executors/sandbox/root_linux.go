//go:build amd64 || arm64

package sandbox

import (
	"fmt"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// changeRoot leaves the host's file tree as far as the driver can, and enters
// the scratch directory.
func (s *sandboxSpec) changeRoot(p *program) {
	switch s.Root {
	case rootPivot:
		s.pivot(p)
	case rootKeep:
	default:
		p.fail(fmt.Errorf("unknown root %q", s.Root))
	}
	p.step = "enter scratch"
	p.call(unix.SYS_CHDIR, p.text(s.pathInside(s.Scratch)))
}

// pivot makes the runtime directory the only mount of the namespace, read-only,
// with a bounded tmpfs as scratch. No /proc, /dev or /sys is mounted.
func (s *sandboxSpec) pivot(p *program) {
	id := max(s.ID, 0)
	runtime, tmpfs := p.text(s.Runtime), p.text("tmpfs")
	p.step = "private mounts"
	p.call(unix.SYS_MOUNT, num(0), p.text("/"), num(0), num(unix.MS_PRIVATE|unix.MS_REC), num(0))
	p.step = "bind runtime"
	// Without MS_REC: a mount someone made below the runtime is not wanted.
	p.call(unix.SYS_MOUNT, runtime, runtime, num(0), num(unix.MS_BIND), num(0))
	p.step = "read-only runtime"
	p.attributes(runtime, 0, unix.MOUNT_ATTR_RDONLY|unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NODEV)
	p.step = "mount scratch"
	options := fmt.Sprintf("size=%d,nr_inodes=%d,mode=0700,uid=%d,gid=%d", s.Room, scratchFiles, id, id)
	scratch := p.text(filepath.Join(s.Runtime, s.Scratch))
	p.call(unix.SYS_MOUNT, tmpfs, scratch, tmpfs, num(unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC), p.text(options))
	if s.Image.Urandom {
		s.mountRandomDevice(p)
	}
	p.step = "enter runtime"
	p.call(unix.SYS_CHDIR, runtime)
	p.pivot("box")
}

// mountRandomDevice gives the sandbox the one device that its Python cannot do
// without.
func (s *sandboxSpec) mountRandomDevice(p *program) {
	p.step = "mount /" + randomDevice
	place := p.text(filepath.Join(s.Runtime, randomDevice))
	p.call(unix.SYS_MOUNT, p.text("/"+randomDevice), place, num(0), num(unix.MS_BIND), num(0))
	p.attributes(place, 0, unix.MOUNT_ATTR_RDONLY|unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NOEXEC)
}
