//go:build amd64 || arm64

package sandbox

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Landlock ABI versions that a driver can insist on.
const (
	abiAny      = 1 // Linux 5.13
	abiTruncate = 3 // Linux 6.2; before it a file that must not be written can be truncated
	abiNet      = 4 // Linux 6.7: TCP
	abiIoctl    = 5 // Linux 6.10: ioctl on devices
	abiScope    = 6 // Linux 6.12: signals and abstract sockets
)

const (
	fsRead  = unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_READ_DIR
	fsWrite = unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_READ_FILE
	// fsOwn has the rights of a script in a scratch directory of its own. No
	// symlinks, devices, sockets or pipes: no analysis needs them.
	fsOwn = fsRead | fsWrite | unix.LANDLOCK_ACCESS_FS_MAKE_REG | unix.LANDLOCK_ACCESS_FS_MAKE_DIR |
		unix.LANDLOCK_ACCESS_FS_REMOVE_FILE | unix.LANDLOCK_ACCESS_FS_REMOVE_DIR
	// fsV1 is every right of ABI 1: all are denied unless a rule grants them.
	fsV1 = unix.LANDLOCK_ACCESS_FS_MAKE_SYM<<1 - 1
)

// landlockABI is the version of the running kernel, or an error if Landlock is
// not compiled in or not enabled at boot.
func landlockABI() (int, error) {
	v, _, e := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	if e != 0 {
		return 0, fmt.Errorf("not available in this kernel (add landlock to lsm=): %w", e)
	}
	return int(v), nil
}

// Descriptors that restrictFiles opens: the lowest that are free.
const (
	rulesetFD = lowestFD
	grantFD   = rulesetFD + 1
)

// restrictFiles lets the sandbox read the runtime, execute the loader and use its
// scratch directory, and nothing else of the file system, TCP, abstract
// sockets and signals.
func (s *sandboxSpec) restrictFiles(p *program) {
	abi, err := landlockABI()
	if err != nil {
		p.fail(fmt.Errorf("landlock: %w", err))
	}
	if abi < s.Landlock {
		p.fail(fmt.Errorf("landlock: ABI %d, driver needs %d", abi, s.Landlock))
	}
	attr := unix.LandlockRulesetAttr{Handled_access_fs: fsV1}
	write, own := uint64(fsWrite), uint64(fsOwn)
	if abi >= 2 {
		attr.Handled_access_fs |= unix.LANDLOCK_ACCESS_FS_REFER
		own |= unix.LANDLOCK_ACCESS_FS_REFER
	}
	if abi >= abiTruncate {
		attr.Handled_access_fs |= unix.LANDLOCK_ACCESS_FS_TRUNCATE
		write |= unix.LANDLOCK_ACCESS_FS_TRUNCATE
		own |= unix.LANDLOCK_ACCESS_FS_TRUNCATE
	}
	if abi >= abiNet {
		attr.Handled_access_net = unix.LANDLOCK_ACCESS_NET_BIND_TCP | unix.LANDLOCK_ACCESS_NET_CONNECT_TCP
	}
	if abi >= abiIoctl {
		attr.Handled_access_fs |= unix.LANDLOCK_ACCESS_FS_IOCTL_DEV
	}
	if abi >= abiScope {
		attr.Scoped = unix.LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET | unix.LANDLOCK_SCOPE_SIGNAL
	}
	p.step = "landlock ruleset"
	// Fields unknown to an older kernel are zero, which it accepts.
	p.call(unix.SYS_LANDLOCK_CREATE_RULESET, value(p, &attr), num(unsafe.Sizeof(attr)), num(0))

	type grant struct {
		path   string
		access uint64
	}
	grants := []grant{
		{s.pathInside("usr"), fsRead},
		{s.pathInside("lib"), fsRead},
		{s.pathInside(bootFile), unix.LANDLOCK_ACCESS_FS_READ_FILE},
		{s.pathInside(s.Image.entry()), unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_EXECUTE},
	}
	if s.Image.Urandom {
		device := s.pathInside(randomDevice)
		if s.Root == rootKeep {
			device = "/" + randomDevice
		}
		grants = append(grants, grant{device, unix.LANDLOCK_ACCESS_FS_READ_FILE})
	}
	if s.Root == rootPivot {
		grants = append(grants, grant{s.pathInside(s.Scratch), own})
	} else {
		// On a disk without quota the one file that RLIMIT_FSIZE bounds is all
		// the script may write.
		grants = append(grants, grant{s.pathInside(s.Scratch), fsRead}, grant{s.pathInside(s.Scratch + "/" + inputName), write})
	}
	for _, g := range grants {
		p.step = "landlock " + g.path
		allowBeneath(p, g.path, g.access)
	}
	p.step = "landlock"
	p.call(unix.SYS_LANDLOCK_RESTRICT_SELF, num(rulesetFD), num(0))
	p.call(unix.SYS_CLOSE, num(rulesetFD))
}

func allowBeneath(p *program, path string, access uint64) {
	p.call(unix.SYS_OPENAT, num(unix.AT_FDCWD), p.text(path), num(unix.O_PATH|unix.O_CLOEXEC), num(0))
	rule := unix.LandlockPathBeneathAttr{Allowed_access: access, Parent_fd: grantFD}
	p.call(unix.SYS_LANDLOCK_ADD_RULE, num(rulesetFD), num(unix.LANDLOCK_RULE_PATH_BENEATH), value(p, &rule), num(0))
	p.call(unix.SYS_CLOSE, num(grantFD))
}
