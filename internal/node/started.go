package node

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"aob.dev/writ/intents"
	"aob.dev/writ/internal/durable"
	"aob.dev/writ/internal/health"
)

// part of a data directory that nothing makes again: what others have been shown
// rests on it.
type part struct {
	name  string // below the directory
	there func(data string) (bool, error)
}

// parts in the order in which a first start makes them. One that is there proves
// that those before it were.
var parts = []part{
	{"keys", func(data string) (bool, error) {
		found, err := filepath.Glob(filepath.Join(keysDir(data), "*.pem"))
		return len(found) > 0, err
	}},
	{"journal", func(data string) (bool, error) { return holdsBytes(filepath.Join(data, "journal", "journal.db")) }},
	{"keys/tags", func(data string) (bool, error) { return holdsBytes(tagFile(data)) }},
	{"ledger", func(data string) (bool, error) { return holdsBytes(filepath.Join(ledgerDir(data), "checkpoint")) }},
}

func holdsBytes(path string) (bool, error) {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil && info.Size() > 0, err
}

// startedFile says that the log of a directory has begun, and all parts were there.
func startedFile(data string) string { return filepath.Join(data, "started") }

// ErrPartMissing says that something is gone that is not made again.
var ErrPartMissing = errors.New("a part of the data directory is gone")

// checkParts refuses a directory of whose log a part is gone. Before the log has
// begun nothing is missing: a start that was cut off goes on where it was.
func checkParts(data string) error {
	begun, err := holdsBytes(startedFile(data))
	if err != nil {
		return err
	}
	for i := len(parts) - 1; i >= 0; i-- {
		there, err := parts[i].there(data)
		switch {
		case err != nil:
			return err
		case begun && !there:
			return missing(filepath.Join(data, filepath.FromSlash(parts[i].name)))
		}
		begun = begun || there
	}
	return nil
}

func missing(path string) error {
	return fmt.Errorf("%w: %s. It is not made again, since what others were shown rests on it. Put it back, "+
		"restore a backup to another directory (writ restore BACKUP --data DIR), or begin a new log in a new one", ErrPartMissing, path)
}

// checkBegun is checkParts for what only an open journal tells: one without records
// beside a log that has begun would get a second genesis.
func (n *Node) checkBegun(context.Context) error {
	if n.journal.Next() > 0 {
		return nil
	}
	for _, p := range parts[2:] {
		if there, err := p.there(n.cfg.Dir); err != nil || there {
			return errors.Join(err, missing(filepath.Join(n.cfg.Dir, "journal")))
		}
	}
	if begun, err := holdsBytes(startedFile(n.cfg.Dir)); err != nil || begun {
		return errors.Join(err, missing(filepath.Join(n.cfg.Dir, "journal")))
	}
	return nil
}

// arm writes down that the log has begun, once all parts are there: from then on
// none of them is made again. A crash before it leaves what the next start makes
// whole; names that a start before has left unsynced are synced with the file's.
func (n *Node) arm() error {
	if begun, err := holdsBytes(startedFile(n.cfg.Dir)); err != nil || begun {
		return err
	}
	for _, p := range parts {
		if there, err := p.there(n.cfg.Dir); err != nil || !there {
			return err // not yet
		}
	}
	raw, err := json.Marshal(map[string]string{"origin": n.Origin(), "at": intents.FormatTime(n.cfg.Now())})
	if err != nil {
		return err
	}
	return durable.Write(startedFile(n.cfg.Dir), append(raw, '\n'))
}

// checkPromise: every record that is older than what receipts promise has its
// leaf. Where one has not, the ledger was put back from an older copy, or could not
// write for so long: it stays as it is until an operator has looked, for its tree
// would vouch for whatever the journal says today.
func (n *Node) checkPromise(ctx context.Context) error {
	size := n.ledger.Size()
	if size >= n.journal.Next() {
		return nil
	}
	rec, err := n.journal.Get(ctx, size)
	if err != nil {
		return err
	}
	if n.directory.LastAt().Sub(rec.At) <= intents.PromiseSeconds*time.Second {
		return nil
	}
	n.raise(ctx, health.Condition{
		Name: conditionLedger, Blocks: true,
		Reason: fmt.Sprintf("the ledger ends before record %d, whose leaf was promised: it was put back from an older copy, or could not write", size),
		Do:     "put the ledger back that was; if it could not write and the journal is sound, on this machine: writ confirm ledger --data DIR",
	})
	return nil
}
