package sandbox

import "golang.org/x/sys/unix"

const auditArch = unix.AUDIT_ARCH_AARCH64

// archAllowed are calls that one architecture has and another has not, or under
// another name. This one began without the calls that a newer one replaced.
var archAllowed = []uint32{unix.SYS_NEWFSTATAT, unix.SYS_GETRLIMIT}

// archByArgument is empty: a thread sets such registers itself.
var archByArgument []rule

// archPretended is empty: the calls of pretended are all there are here.
var archPretended []uint32
