package measure

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"aob.dev/writ/state"
	"aob.dev/writ/storage/sqlite"
)

// opening measures what a node does with its journal before it takes intents: it
// reads and folds every record. Beside it the same records are only read, as by
// whoever scans an open journal.
func (m madeLog) opening(ctx context.Context) (row Row, err error) {
	rebuilt := state.New()
	began := time.Now()
	j, err := sqlite.OpenJournal(ctx, filepath.Join(m.dir, "journal"), sqlite.JournalOptions{Observer: rebuilt.Observe})
	if err != nil {
		return row, err
	}
	opened := time.Since(began)
	defer func() { err = errors.Join(err, rebuilt.Err(), j.Close()) }()
	n := int64(0)
	began = time.Now()
	for _, err := range j.Scan(ctx, 0) {
		if err != nil {
			return row, err
		}
		n++
	}
	scanned := time.Since(began)
	if n != j.Next() || n < m.intents {
		return row, fmt.Errorf("%d of %d records of %d intents were read", n, j.Next(), m.intents)
	}
	return newRow("opening the journal / scanning it", float64(n)/opened.Seconds(), float64(n)/scanned.Seconds(), "records per second", n), nil
}
