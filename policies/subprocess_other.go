//go:build !linux

package policies

import "errors"

// limitApart fails: limits are not available on this platform, so no tree is evaluated.
func limitApart(uint64) error { return errors.ErrUnsupported }
