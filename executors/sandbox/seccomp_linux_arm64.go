package sandbox

import "golang.org/x/sys/unix"

const auditArch = unix.AUDIT_ARCH_AARCH64

// archAllowed is empty: this architecture began without the calls that newer ones
// replaced.
var archAllowed []uint32

// archByArgument is empty: a thread sets such registers itself.
var archByArgument []rule

// archPretended is empty: the calls of pretended are all there are here.
var archPretended []uint32
