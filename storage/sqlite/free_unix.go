//go:build unix

package sqlite

import (
	"math"

	"golang.org/x/sys/unix"
)

// Free is how many bytes of a directory's file system an ordinary user may still fill.
func Free(dir string) (int64, error) {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return 0, err
	}
	free := uint64(st.Bavail) * uint64(st.Bsize) //nolint:gosec,unconvert // G115: signed or not depending on the system
	return int64(min(free, math.MaxInt64)), nil
}
