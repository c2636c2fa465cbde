package policies

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/fsnotify/fsnotify"
)

// quiet is how long a tree must rest before it is read again: editors and git
// write several files for one change.
const quiet = 150 * time.Millisecond

// Watch calls onChange after changes of a file, or below a directory, have come
// to rest, until ctx ends. The calls come from one goroutine, this one.
// It is called once at the start, so that no change before the watch is missed.
func Watch(ctx context.Context, dir string, onChange func()) error {
	w, err := fsnotify.NewWatcher()
	if err != nil {
		return fmt.Errorf("watch %s: %w", dir, err)
	}
	defer w.Close()
	only := "" // the file, if it is one
	if info, err := os.Stat(dir); err == nil && !info.IsDir() {
		only = filepath.Clean(dir)
		err = w.Add(filepath.Dir(only)) // a file that is replaced is another one
		if err != nil {
			return fmt.Errorf("watch %s: %w", dir, err)
		}
	} else if err := watchTree(w, dir); err != nil {
		return fmt.Errorf("watch %s: %w", dir, err)
	}
	rest := time.NewTimer(0) // what changed before the watch began is noticed too
	defer rest.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case err, ok := <-w.Errors:
			if !ok {
				return nil
			}
			return fmt.Errorf("watch %s: %w", dir, err)
		case event, ok := <-w.Events:
			if !ok {
				return nil
			}
			if only != "" && filepath.Clean(event.Name) != only {
				continue
			}
			if event.Has(fsnotify.Create) {
				if info, err := os.Stat(event.Name); err == nil && info.IsDir() {
					if err := watchTree(w, event.Name); err != nil {
						return fmt.Errorf("watch %s: %w", dir, err)
					}
				}
			}
			rest.Reset(quiet)
		case <-rest.C:
			onChange()
		}
	}
}

// watchTree watches a directory and all below it; the watcher itself does not.
func watchTree(w *fsnotify.Watcher, dir string) error {
	return filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		switch {
		case os.IsNotExist(err):
			return nil // gone again
		case err != nil:
			return err
		case !d.IsDir():
			return nil
		case name != dir && strings.HasPrefix(d.Name(), "."):
			return fs.SkipDir
		}
		return w.Add(name)
	})
}
