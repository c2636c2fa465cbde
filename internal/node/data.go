package node

import (
	"errors"
	"io/fs"
	"path/filepath"

	"aob.dev/writ/internal/durable"
)

// makeData makes the data directory where there is none. Its own name is durable
// when makeData returns, also where a start before was cut off or somebody else
// made it.
func makeData(dir string) error {
	if err := durable.MkdirAll(dir); err != nil {
		return err
	}
	abs, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	if err := durable.SyncDir(filepath.Dir(abs)); !errors.Is(err, fs.ErrPermission) {
		return err
	}
	return nil // the directory above is somebody else's, who made ours in it
}
