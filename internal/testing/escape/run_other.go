//go:build !linux || !(amd64 || arm64)

package escape

import (
	"context"
	"errors"

	"aob.dev/writ/executors/sandbox"
)

var errPlatform = errors.New("escape: there is no sandbox on this platform")

// Bait cannot be laid on this platform.
type Bait struct{}

// LayBait fails on this platform.
func LayBait(string) (*Bait, error) { return nil, errPlatform }

// Remove does nothing on this platform.
func (*Bait) Remove() error { return nil }

// Try fails on this platform.
func (Probe) Try(context.Context, sandbox.Runner, *Bait) (Finding, error) {
	return Finding{}, errPlatform
}
