//go:build linux && !amd64

package sandbox

import "errors"

// auditArch is zero where no table was written: the filter then refuses to
// compile and every driver's Probe fails.
const auditArch = 0

var errArch = errors.New("not supported on this architecture")

var archAllowed, archPretended []uint32
