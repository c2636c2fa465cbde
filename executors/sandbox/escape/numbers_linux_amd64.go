package escape

import "golang.org/x/sys/unix"

// archNumbers are calls that newer architectures no longer have.
var archNumbers = map[string]int{"arch_prctl": unix.SYS_ARCH_PRCTL, "modify_ldt": unix.SYS_MODIFY_LDT, "vfork": unix.SYS_VFORK}
