package measure

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"aob.dev/writ/storage/sqlite"
)

// Growth is measured at two sizes of one journal: few records, and as many as
// asked for.
const (
	fewRecords    = 10_000
	growthCallers = 128
)

// journalSize is what a journal of a size is like.
type journalSize struct {
	rate float64       // durable commits a second
	p99  time.Duration // of one commit
	open time.Duration // from nothing to the first answer, with an index of all records
	read time.Duration // the same, reading them all
	n    int64
}

// growth measures durable commits at the first size and at as many records as
// asked for, and how long opening takes at both. A commit is an intent with its
// outcome: two records.
func growth(ctx context.Context, dir string, o Options) (rows []Row, err error) {
	var at [2]journalSize
	c := &committer{body: recordBody(), ends: true}
	for i, size := range []int64{fewRecords, o.Records} {
		if at[i], err = c.measureAt(ctx, filepath.Join(dir, "growing"), size, o.Time); err != nil {
			return nil, err
		}
	}
	few, many := at[0], at[1]
	name := func(what string) string { return fmt.Sprintf("%s, %d records / %d", what, o.Records, fewRecords) }
	ms := func(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
	return []Row{
		newRow(name(fmt.Sprintf("commits, %d callers", growthCallers)), many.rate, few.rate, "per second", many.n),
		newRow(name("p99"), ms(many.p99), ms(few.p99), "ms", many.n),
		newRow(name("opening with a snapshot"), ms(many.open), ms(few.open), "ms", 1),
		newRow(name("opening, all records read"), ms(many.read), ms(few.read), "ms", 1),
	}, nil
}

// measureAt fills the journal up to a size, opens it anew in both ways and measures it.
func (c *committer) measureAt(ctx context.Context, dir string, size int64, d time.Duration) (s journalSize, err error) {
	if _, err := c.opened(ctx, dir, nil, func() error { return c.fill(ctx, size) }); err != nil {
		return s, err
	}
	read, err := c.opened(ctx, dir, nil, func() error { return nil })
	if err != nil {
		return s, err
	}
	raw, err := indexOf(ctx, dir)
	if err != nil {
		return s, err
	}
	open, err := c.opened(ctx, dir, raw, func() error { s, err = c.measure(ctx, d); return err })
	s.open, s.read = open, read
	return s, err
}

// opened opens the journal, has something done with it and closes it. It gives how long
// the opening took, with the bytes of an index where there are any.
func (c *committer) opened(ctx context.Context, dir string, index []byte, do func() error) (took time.Duration, err error) {
	began := time.Now()
	var from *sqlite.Index
	if index != nil {
		if from, err = sqlite.ReadIndex(bytes.NewReader(index)); err != nil {
			return 0, err
		}
	}
	if c.journal, err = sqlite.OpenJournal(ctx, dir, sqlite.JournalOptions{From: from}); err != nil {
		return 0, err
	}
	took = time.Since(began)
	return took, errors.Join(do(), c.journal.Close())
}

// indexOf a closed journal, as a snapshot has it.
func indexOf(ctx context.Context, dir string) ([]byte, error) {
	r, err := sqlite.OpenRecords(ctx, dir)
	if err != nil {
		return nil, err
	}
	x := sqlite.NewIndex()
	for e, err := range r.Entries(ctx, 0) {
		if err != nil {
			return nil, errors.Join(err, r.Close())
		}
		x.Observe(e)
	}
	var b bytes.Buffer
	err = errors.Join(x.Write(&b), r.Close())
	return b.Bytes(), err
}

// fill commits until the journal has so many records.
func (c *committer) fill(ctx context.Context, size int64) error {
	var left atomic.Int64
	left.Store((size - c.journal.Next()) / 2) // an intent and its outcome
	return together(growthCallers, func(int) (bool, error) {
		if left.Add(-1) < 0 {
			return false, nil
		}
		return true, errors.Join(c.commit(ctx), ctx.Err())
	})
}

func (c *committer) measure(ctx context.Context, d time.Duration) (s journalSize, err error) {
	var mu sync.Mutex // guards took
	var took []time.Duration
	l := &lane{callers: growthCallers, do: func(ctx context.Context, _ int) error {
		start := time.Now()
		err := c.commit(ctx)
		mu.Lock()
		defer mu.Unlock()
		took = append(took, time.Since(start))
		return err
	}}
	if err := race(ctx, d, l); err != nil {
		return s, err
	}
	slices.Sort(took)
	return journalSize{rate: l.rate(), n: l.n, p99: took[len(took)*99/100]}, nil
}
