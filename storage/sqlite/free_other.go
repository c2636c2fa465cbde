//go:build !unix

package sqlite

import "math"

// freeBytes is not known here: no floor applies.
func freeBytes(string) (int64, error) { return math.MaxInt64, nil }
