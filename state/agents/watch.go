package agents

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Watcher puts the agents of a directory in force for all tenants, at the start and whenever the
// directory changes. Faults are logged, and the revision in force stays. Not safe for concurrent
// use, except String.
type Watcher struct {
	Dir       string   // empty: none
	Owner     string   // a directory: the files count only if both have the same owner; empty: any owner
	Variables []string // environment variables available to files
	Hosts     []string // where remote agents may be in addition to the public network
	Known     func(model string) bool
	Push      func(context.Context, *Revision) error // puts a revision in force, unless it is already
	Log       *slog.Logger

	found string // content when last read
	done  string // the content that was processed

	mu   sync.Mutex
	line string // for people, guarded by mu
}

// lookEvery is how often the directory is read. It must be unchanged for one such interval:
// editors and git write several files for one change.
const lookEvery = 500 * time.Millisecond

// Start puts the directory in force before anybody asks for an agent.
func (w *Watcher) Start(ctx context.Context) {
	if w.Dir == "" {
		return
	}
	w.done = w.look()
	w.put(ctx)
}

// Run reads the directory periodically until ctx ends, and at once when the process gets a
// SIGHUP.
func (w *Watcher) Run(ctx context.Context) error {
	now := make(chan os.Signal, 1)
	signal.Notify(now, syscall.SIGHUP)
	defer signal.Stop(now)
	for {
		look, cancel := context.WithTimeout(ctx, lookEvery)
		asked := false
		select {
		case <-now:
			asked = true
		case <-look.Done():
		}
		cancel()
		if ctx.Err() != nil {
			return nil
		}
		now := w.look()
		unchanged := now == w.found
		w.found = now
		if asked || unchanged && now != w.done {
			w.done = now
			w.put(ctx)
		}
	}
}

// look identifies the content of the directory by names, sizes and times.
func (w *Watcher) look() string {
	var b strings.Builder
	err := fs.WalkDir(os.DirFS(w.Dir), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err == nil {
			fmt.Fprintln(&b, name, info.Size(), info.ModTime().UnixNano())
		}
		return err
	})
	if err != nil {
		return err.Error() // it is missing, or is just changing
	}
	return b.String()
}

// put puts the directory in force unless it already is, and reports the result.
//
// Crash before its intent is committed: the old revision is in force, and the next start puts
// this one in force. Blobs of a revision that is too large for an intent stay, and are found
// again.
func (w *Watcher) put(ctx context.Context) {
	dir, log := w.Dir, w.Log
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		if w.Owner == "" {
			log.WarnContext(ctx, "the directory of agents is not there; those in force stay", slog.String("dir", dir))
			w.report("the directory is not there: make it, or correct the setting agents (its variables are P8_SCHEMA_DIR and AGENT_REGISTRY_DIR)")
		}
		return
	}
	if w.Owner != "" && !sameOwner(dir, w.Owner) {
		log.WarnContext(ctx, "agents are not read: nobody named their directory, and it does not belong to the owner of the data directory alone", slog.String("to_have_them", "writ up --agents "+dir))
		w.report("not read; to have them, type: writ up --agents " + dir)
		return
	}
	r, err := ReadDir(dir, os.Getenv, w.Variables, w.Hosts...)
	if err == nil {
		r, err = r.ForAll()
	}
	if err == nil && len(r.Files()) == 0 {
		return
	}
	if err == nil {
		err = w.Push(ctx, r)
	}
	if err != nil {
		log.ErrorContext(ctx, "the agents were not put in force; those that were stay", slog.String("dir", dir), slog.String("error", err.Error()))
		w.report("not in force, see writ registry check " + dir)
		return
	}
	var names []string
	for _, a := range r.Agents {
		names = append(names, a.Name)
		if a.Model != "" && !w.Known(a.Model) {
			log.WarnContext(ctx, "an agent names a model that the configuration does not have, and uses the default one", slog.String("agent", a.Name), slog.String("model", a.Model))
		}
	}
	for _, f := range r.Notices {
		log.WarnContext(ctx, "agents", slog.String("notice", f.Error()))
	}
	w.report(strings.Join(names, ", "))
}

// sameOwner reports whether a directory that is no link has the same owner as another one, and
// is not writable for everybody.
func sameOwner(dir, as string) bool {
	info, err1 := os.Lstat(dir)
	of, err2 := os.Stat(as)
	if err1 != nil || err2 != nil || !info.IsDir() || info.Mode().Perm()&0o002 != 0 {
		return false
	}
	a, ok1 := info.Sys().(*syscall.Stat_t)
	b, ok2 := of.Sys().(*syscall.Stat_t)
	return ok1 && ok2 && a.Uid == b.Uid
}

func (w *Watcher) report(text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.line = text
}

// String describes the directory's agents in force, for people; empty if there is no directory.
func (w *Watcher) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.line == "" {
		return ""
	}
	return fmt.Sprintf("agents of %s: %s", w.Dir, w.line)
}
