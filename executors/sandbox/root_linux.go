//go:build amd64 || arm64

package sandbox

import (
	"fmt"
	"path/filepath"
	"unsafe"

	"golang.org/x/sys/unix"
)

// changeRoot leaves the host's file tree as far as the driver can, and enters
// the scratch directory.
func changeRoot(p *program, s *sandboxSpec) error {
	switch s.Root {
	case rootPivot:
		if err := pivot(p, s); err != nil {
			return err
		}
	case rootChroot:
		runtime, err := p.text(s.Runtime)
		if err != nil {
			return err
		}
		p.step = "chroot"
		p.call(unix.SYS_CHROOT, runtime)
	case rootKeep:
	default:
		return fmt.Errorf("unknown root %q", s.Root)
	}
	scratch, err := p.text(s.pathInside(s.Scratch))
	if err != nil {
		return err
	}
	p.step = "enter scratch"
	p.call(unix.SYS_CHDIR, scratch)
	return nil
}

// pivot makes the runtime directory the only mount of the namespace, read-only,
// with a bounded tmpfs as scratch. No /proc, /dev or /sys is mounted.
func pivot(p *program, s *sandboxSpec) error {
	id := max(s.ID, 0)
	texts := [...]string{
		"/", s.Runtime, filepath.Join(s.Runtime, s.Scratch), "tmpfs", ".", "box",
		fmt.Sprintf("size=%d,nr_inodes=%d,mode=0700,uid=%d,gid=%d", s.Room, scratchFiles, id, id),
	}
	var at [len(texts)]arg
	for i, text := range texts {
		var err error
		if at[i], err = p.text(text); err != nil {
			return err
		}
	}
	root, runtime, scratch, tmpfs, here, host, options := at[0], at[1], at[2], at[3], at[4], at[5], at[6]
	p.step = "private mounts"
	p.call(unix.SYS_MOUNT, num(0), root, num(0), num(unix.MS_PRIVATE|unix.MS_REC), num(0))
	p.step = "bind runtime"
	// Without MS_REC: a mount someone made below the runtime is not wanted.
	p.call(unix.SYS_MOUNT, runtime, runtime, num(0), num(unix.MS_BIND), num(0))
	p.step = "read-only runtime"
	attr := unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY | unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV}
	p.call(unix.SYS_MOUNT_SETATTR, num(unix.AT_FDCWD), runtime, num(0), value(p, &attr), num(unsafe.Sizeof(attr)))
	p.step = "mount scratch"
	p.call(unix.SYS_MOUNT, tmpfs, scratch, tmpfs, num(unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC), options)
	if s.Image.Urandom {
		if err := mountRandomDevice(p, s); err != nil {
			return err
		}
	}
	p.step = "enter runtime"
	p.call(unix.SYS_CHDIR, runtime)
	p.step = "pivot_root"
	// The old root ends up on top of the new one and is detached from there.
	p.call(unix.SYS_PIVOT_ROOT, here, here)
	p.step = "detach old root"
	p.call(unix.SYS_UMOUNT2, here, num(unix.MNT_DETACH))
	p.step = "host name"
	p.call(unix.SYS_SETHOSTNAME, host, num(len("box")))
	return nil
}

// mountRandomDevice gives the sandbox the one device that its Python cannot do
// without.
func mountRandomDevice(p *program, s *sandboxSpec) error {
	p.step = "mount /" + randomDevice
	device, err := p.text("/" + randomDevice)
	if err != nil {
		return err
	}
	place, err := p.text(filepath.Join(s.Runtime, randomDevice))
	if err != nil {
		return err
	}
	p.call(unix.SYS_MOUNT, device, place, num(0), num(unix.MS_BIND), num(0))
	attr := unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY | unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NOEXEC}
	p.call(unix.SYS_MOUNT_SETATTR, num(unix.AT_FDCWD), place, num(0), value(p, &attr), num(unsafe.Sizeof(attr)))
	return nil
}
