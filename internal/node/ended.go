package node

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// endedName is a file that is there while nobody serves and the last one to
// serve ended as it was told to. It decides nothing but how often an order that
// was open is tried again, so that it need not be durable.
const endedName = "ended"

// takeEnded removes the mark, and remembers whether it was there.
func (n *Node) takeEnded() error {
	err := os.Remove(filepath.Join(n.cfg.Dir, endedName))
	n.ended = err == nil
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// putEnded makes the mark after an end as told, or again where nothing was
// served since it was taken.
func (n *Node) putEnded() error {
	if !n.ended {
		return nil
	}
	return os.WriteFile(filepath.Join(n.cfg.Dir, endedName), nil, 0o600)
}
