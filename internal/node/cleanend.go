package node

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"aob.dev/writ/internal/durable"
)

// endedName is a file that exists while no process serves and the last one ended cleanly. It
// determines how often an open intent is retried.
const endedName = "ended"

// takeEnded removes the file, and remembers whether it was there.
func (n *Node) takeEnded() error {
	path := filepath.Join(n.cfg.Dir, endedName)
	_, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	n.ended = true
	return durable.Remove(path)
}

// putEnded writes the file after a clean end, or if nothing was served since it was removed.
func (n *Node) putEnded() error {
	if !n.ended {
		return nil
	}
	return durable.Write(filepath.Join(n.cfg.Dir, endedName), nil)
}
