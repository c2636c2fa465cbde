package sandbox

import (
	"fmt"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// changeRoot leaves the host's file tree as far as the driver can, and enters
// the scratch directory.
func changeRoot(s *boxSpec) error {
	switch s.Root {
	case rootPivot:
		if err := pivot(s); err != nil {
			return err
		}
	case rootChroot:
		if err := unix.Chroot(s.Runtime); err != nil {
			return fmt.Errorf("chroot: %w", err)
		}
	case rootKeep:
	default:
		return fmt.Errorf("unknown root %q", s.Root)
	}
	if err := unix.Chdir(s.inBox(s.Scratch)); err != nil {
		return fmt.Errorf("enter scratch: %w", err)
	}
	return nil
}

// pivot makes the runtime directory the only mount of the namespace, read-only,
// with a bounded tmpfs as scratch. No /proc, /dev or /sys is mounted.
func pivot(s *boxSpec) error {
	if err := unix.Mount("", "/", "", unix.MS_PRIVATE|unix.MS_REC, ""); err != nil {
		return fmt.Errorf("private mounts: %w", err)
	}
	// Without MS_REC: a mount someone made below the runtime is not wanted.
	if err := unix.Mount(s.Runtime, s.Runtime, "", unix.MS_BIND, ""); err != nil {
		return fmt.Errorf("bind runtime: %w", err)
	}
	attr := unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY | unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV}
	if err := unix.MountSetattr(unix.AT_FDCWD, s.Runtime, 0, &attr); err != nil {
		return fmt.Errorf("read-only runtime: %w", err)
	}
	id := max(s.ID, 0)
	options := fmt.Sprintf("size=%d,nr_inodes=%d,mode=0700,uid=%d,gid=%d", s.Room, scratchFiles, id, id)
	err := unix.Mount("scratch", filepath.Join(s.Runtime, s.Scratch), "tmpfs",
		unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, options)
	if err != nil {
		return fmt.Errorf("mount scratch: %w", err)
	}
	if err := unix.Chdir(s.Runtime); err != nil {
		return fmt.Errorf("enter runtime: %w", err)
	}
	// The old root ends up on top of the new one and is detached from there.
	if err := unix.PivotRoot(".", "."); err != nil {
		return fmt.Errorf("pivot_root: %w", err)
	}
	if err := unix.Unmount(".", unix.MNT_DETACH); err != nil {
		return fmt.Errorf("detach old root: %w", err)
	}
	return unix.Sethostname([]byte("box"))
}
