package sandbox

import "golang.org/x/sys/unix"

const auditArch = unix.AUDIT_ARCH_X86_64

// archAllowed are calls that newer architectures no longer have.
var archAllowed = []uint32{
	unix.SYS_OPEN, unix.SYS_CREAT, unix.SYS_STAT, unix.SYS_LSTAT, unix.SYS_ACCESS,
	unix.SYS_READLINK, unix.SYS_UNLINK, unix.SYS_MKDIR, unix.SYS_RMDIR, unix.SYS_RENAME, unix.SYS_GETDENTS,
	unix.SYS_POLL, unix.SYS_SELECT, unix.SYS_DUP2, unix.SYS_PIPE, unix.SYS_TIME, unix.SYS_GETPGRP,
	unix.SYS_ALARM, unix.SYS_PAUSE,
}

// The registers that a thread finds its own memory by, from asm/prctl.h; not the
// faults of cpuid, the large registers or another vdso.
const (
	archSetFS = 0x1002
	archGetFS = 0x1003
)

var archByArgument = []rule{{nr: unix.SYS_ARCH_PRCTL, action: actAllow, any: equals(0, archSetFS, archGetFS)}}

var archPretended = []uint32{
	unix.SYS_CHMOD, unix.SYS_CHOWN, unix.SYS_LCHOWN, unix.SYS_UTIME, unix.SYS_UTIMES, unix.SYS_FUTIMESAT,
}
