package measure

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"aob.dev/writ/storage"
	"aob.dev/writ/storage/sqlite"
)

// journal measures durable commits: one intent record each, which takes a key
// that no other has and touches a subject of its own. With a number of records
// it measures instead what becomes of them as the journal grows.
func journal(ctx context.Context, o Options) ([]Row, error) {
	return within(func(dir string) ([]Row, error) {
		if o.Records > 0 {
			return growth(ctx, dir, o)
		}
		j, err := sqlite.OpenJournal(ctx, filepath.Join(dir, "journal"), sqlite.JournalOptions{})
		if err != nil {
			return nil, err
		}
		commits := committer{journal: j, body: recordBody()}
		rows, err := against(ctx, dir, o.Time, "commits", commits.lane(1), commits.lane(16), commits.lane(64), commits.lane(128))
		return rows, errors.Join(err, j.Close())
	})
}

func recordBody() json.RawMessage {
	return json.RawMessage(fmt.Sprintf("%q", strings.Repeat("x", recordBytes)))
}

type committer struct {
	journal *sqlite.Journal
	body    json.RawMessage
	ends    bool // every intent has its outcome in its own commit
	last    atomic.Int64
}

func (c *committer) lane(callers int) *lane {
	return &lane{callers: callers, do: func(ctx context.Context, _ int) error { return c.commit(ctx) }}
}

func (c *committer) commit(ctx context.Context) error {
	id := fmt.Sprint(c.last.Add(1))
	key := storage.NewIntentKeys(nil).Key(tenant, "u", "t", id)
	decision := json.RawMessage(fmt.Sprintf(`{"intent_id":%q,"verdict":"allow","executor":"skills","key":%q}`, id, key))
	record := storage.NewRecord(storage.KindIntent, time.Now(), map[string]json.RawMessage{storage.PartEnvelope: c.body, storage.PartDecision: decision})
	entries := []storage.Entry{{
		Record: record, Take: true, Key: key, Holder: storage.NoPosition, Open: true, Target: storage.NoPosition,
		Writes: []storage.Subject{storage.Subject("plan/" + tenant + "/" + id)},
	}}
	if c.ends {
		outcome := storage.NewRecord(storage.KindOutcome, time.Now(), map[string]json.RawMessage{storage.PartOutcome: c.body[:recordBytes/10]})
		entries = append(entries, storage.Entry{Record: outcome, TargetPrevious: true, Target: storage.NoPosition})
	}
	res, err := c.journal.Commit(ctx, storage.Commit{ID: id, Entries: entries})
	if err == nil && res.Verdict != storage.Won {
		err = fmt.Errorf("commit %s: verdict %d", id, res.Verdict)
	}
	return err
}
