package datadir

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"aob.dev/writ/intents"
	"aob.dev/writ/internal/durable"
)

// part of a data directory that is never made again, because others depend on what they have seen
// of it, or because its data is nowhere else.
type part struct {
	name   string // below the directory
	exists func(data string) (bool, error)
	only   string // data that is nowhere else; empty: nothing can replace it
	empty  string // the command that begins an empty one, by the directory
}

// parts are in the order in which a first start makes them. If the journal or one after it
// exists, those before it existed, too.
var parts = []part{
	{name: "keys", exists: func(data string) (bool, error) {
		found, err := filepath.Glob(filepath.Join(Keys(data), "*.pem"))
		return len(found) > 0, err
	}},
	{name: "journal", exists: func(data string) (bool, error) { return holdsBytes(JournalFile(data)) }},
	{name: "keys/tags", exists: func(data string) (bool, error) { return holdsBytes(Tags(data)) }},
	{name: "ledger", exists: func(data string) (bool, error) { return holdsBytes(filepath.Join(Ledger(data), "checkpoint")) }},
}

// stores are made before the journal, and before keys, unless those were made by hand. There are
// none if a server has their data.
func stores(documents DocumentsAt) (list []part) {
	if documents.URL == "" {
		list = append(list, part{
			name: "documents.db", exists: func(data string) (bool, error) { return exists(DocumentsFile(data)) },
			only: "memories, sessions and knowledge", empty: "touch %s/documents.db",
		})
	}
	return append(list, part{
		name: "blobs", only: "artifacts and files of steps", empty: "mkdir -p %s/blobs/cas",
		exists: func(data string) (bool, error) {
			if at, err := PlaceOf(data); err != nil || !at.Local() {
				return true, err
			}
			return exists(filepath.Join(data, "blobs", "cas"))
		},
	})
}

func exists(path string) (bool, error) {
	_, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

func holdsBytes(path string) (bool, error) {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil && info.Size() > 0, err
}

// startedFile records that the log of a directory has begun and all parts existed.
func startedFile(data string) string { return filepath.Join(data, "started") }

// Exists refuses a directory that is missing, or in which no log has begun.
func Exists(data string) error {
	switch _, err := os.Stat(data); {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("no data directory: %w. Name the one of your writ with --data or WRIT_DATA; writ up --data %s makes a new one", err, data)
	case err != nil:
		return unreadable(err)
	}
	switch begun, err := HasJournal(data); {
	case err != nil:
		return unreadable(err)
	case !begun:
		return fmt.Errorf("no log has begun in %s: %w. Name the data directory of your writ with --data or WRIT_DATA; writ up --data %s begins one there", data, fs.ErrNotExist, data)
	}
	return nil
}

func unreadable(err error) error {
	return fmt.Errorf("the data directory cannot be read: %w. Name the one of your writ with --data or WRIT_DATA, as a user who may read it", err)
}

// Restoring is where a restore into a directory puts unchecked data: inside the directory if that
// exists, or else beside it.
func Restoring(data string) (inside, beside string) {
	return filepath.Join(data, ".restoring"), filepath.Clean(data) + ".restoring"
}

// ErrRestoring reports that a restore into a directory is running, or was interrupted.
var ErrRestoring = errors.New("a restore into this directory is running, or was interrupted")

func checkRestored(data string) error {
	inside, beside := Restoring(data)
	for _, stage := range []string{inside, beside} {
		if _, err := os.Stat(stage); err == nil {
			return fmt.Errorf("%w: a log that began here would not be the restored one. If no restore is running, remove %s and restore again (writ admin restore BACKUP --data DIR)", ErrRestoring, stage)
		} else if !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// ErrPartMissing reports that a part is gone that is never made again.
var ErrPartMissing = errors.New("a part of the data directory is missing")

// CheckParts refuses a directory if its log has begun and a part is missing. Before the log has
// begun nothing is missing: the next start continues an interrupted one. Nothing begins while a
// restore is running or after it was interrupted. documents is the place of the directory's
// documents.
func CheckParts(data string, documents DocumentsAt) error {
	if err := checkRestored(data); err != nil {
		return err
	}
	begun, err := holdsBytes(startedFile(data))
	if err != nil {
		return err
	}
	first := append(stores(documents), parts[0]) // order is irrelevant: none of them begins the log
	all := slices.Concat(first, parts[1:])
	for i, p := range slices.Backward(all) {
		there, err := p.exists(data)
		switch {
		case err != nil:
			return err
		case begun && !there:
			return p.missing(data)
		}
		begun = begun || there && i >= len(first)
	}
	return nil
}

func (p part) missing(data string) error {
	why, or := "since what others have seen depends on it", "begin a new log in a new one"
	if p.only != "" {
		why, or = "since "+p.only+" are only there", "go on without them: "+fmt.Sprintf(p.empty, data)
	}
	return fmt.Errorf("%w: %s. It is not made again, %s. Put it back, restore a backup to another directory (writ admin restore BACKUP --data DIR), or %s",
		ErrPartMissing, filepath.Join(data, filepath.FromSlash(p.name)), why, or)
}

// CheckUnbegun is CheckParts for an open journal without records. If the log has begun, a
// second genesis would be written to it.
func CheckUnbegun(data string) error {
	for _, p := range parts[2:] {
		if there, err := p.exists(data); err != nil || there {
			return errors.Join(err, parts[1].missing(data))
		}
	}
	if begun, err := holdsBytes(startedFile(data)); err != nil || begun {
		return errors.Join(err, parts[1].missing(data))
	}
	return nil
}

// HasJournal reports whether a directory has a journal.
func HasJournal(data string) (bool, error) { return parts[1].exists(data) }

// HasTagSecret reports whether a directory has the secret of tags.
func HasTagSecret(data string) (bool, error) { return parts[2].exists(data) }

// HasCheckpoint reports whether a directory has a checkpoint.
func HasCheckpoint(data string) (bool, error) { return parts[3].exists(data) }

// Arm records that the log of a directory has begun, once all parts exist: from then on
// none of them is made again. After a crash before it the next start makes the missing
// parts. The sync of the file also syncs names that an earlier start left unsynced.
func Arm(data, origin string, at time.Time) error {
	if begun, err := holdsBytes(startedFile(data)); err != nil || begun {
		return err
	}
	for _, p := range parts {
		if there, err := p.exists(data); err != nil || !there {
			return err // not yet
		}
	}
	return durable.WriteJSON(startedFile(data), map[string]string{"origin": origin, "at": intents.FormatTime(at)})
}
