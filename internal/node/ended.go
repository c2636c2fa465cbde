package node

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"aob.dev/writ/internal/durable"
)

// endedName is a file that is there while nobody serves and the last one to
// serve ended as it was told to. It decides how often an order that was open is
// tried again.
const endedName = "ended"

// takeEnded removes the mark, and remembers whether it was there.
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

// putEnded makes the mark after an end as told, or again where nothing was
// served since it was taken.
func (n *Node) putEnded() error {
	if !n.ended {
		return nil
	}
	return durable.Write(filepath.Join(n.cfg.Dir, endedName), nil)
}
