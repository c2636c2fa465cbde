//go:build !linux

package policies

import "errors"

// limitApart bounds this process; it cannot be had here, and so nothing is tried.
func limitApart(uint64) error { return errors.ErrUnsupported }
