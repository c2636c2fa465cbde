package audit

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"

	"aob.dev/writ/intents"
	"aob.dev/writ/storage"
	"aob.dev/writ/storage/ledger"
)

// Batches bound what is in memory: lines are passed on together.
const (
	batchLines = 64
	batchBytes = 2 << 20
)

// batch is some lines, or records of one's own journal, on their way.
type batch struct {
	raw     []string
	records []storage.Record
	cut     bool               // the last line is not whole
	log     *ledger.Checkpoint // nil: that the tiles are the log's is not checked
	parsed  []parsedLine
}

// parsedLine is a parsed line.
type parsedLine struct {
	line
	item *item
	err  error
}

// batch reads the next lines; false at the end.
func (l *lines) batch() (b *batch, more bool, err error) {
	b = &batch{}
	for size := 0; !b.cut && len(b.raw) < batchLines && size < batchBytes; {
		raw, err := l.next()
		if errors.Is(err, io.EOF) {
			break
		}
		if b.cut = errors.Is(err, errCut); err != nil && !b.cut {
			return nil, false, err
		}
		b.raw = append(b.raw, raw)
		size += len(raw)
	}
	return b, len(b.raw) > 0, nil
}

// decode parses the lines, on a worker.
func (b *batch) decode() {
	for _, rec := range b.records {
		b.parsed = append(b.parsed, parsedLine{item: ownItem(rec)})
	}
	if b.records != nil {
		return
	}
	b.parsed = make([]parsedLine, len(b.raw))
	for i, raw := range b.raw {
		p := &b.parsed[i]
		if b.cut && i == len(b.raw)-1 {
			p.err = errors.New("the bundle is cut short in the middle of a line")
			return
		}
		if p.line, p.err = decodeLine(raw); p.err != nil {
			return
		}
		switch {
		case p.Record != nil:
			p.item = recordItem(p.Record)
		case p.Leaf != nil:
			p.item = bareItem(*p.Leaf)
		case p.Tile != nil && b.log != nil && ledger.VerifyTile(*b.log, p.Tile.Index, p.Tile.Hashes, p.Tile.Around) != nil:
			p.err = errors.New("the log has another tile here")
			return
		case p.Blob != nil && intents.Digest(p.Blob.Data) != p.Blob.Digest:
			p.err = errors.New("a blob is not what its digest says: " + p.Blob.Digest)
			return
		}
	}
}

// stages decodes batches on workers. next makes one, or reports that there are no more. apply gets
// them in order and returns what a worker does next. The first error ends everything, after the
// workers have finished their batches.
type stages struct {
	workers int
	next    func() (b *batch, more bool, err error)
	apply   func(*batch) (then func(), err error)
}

func (s stages) run(ctx context.Context) error {
	type task struct {
		*batch
		ended chan struct{}
	}
	free := make(chan struct{}, s.workers)
	start := func(b *batch, fn func()) task {
		t := task{b, make(chan struct{})}
		free <- struct{}{}
		go func() {
			defer func() { <-free; close(t.ended) }()
			fn()
		}()
		return t
	}
	defer func() {
		for range s.workers { // wait for them
			free <- struct{}{}
		}
	}()
	var read []task
	for more := true; ; {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		for more && len(read) <= s.workers {
			var b *batch
			var err error
			if b, more, err = s.next(); err != nil {
				return err
			}
			if more {
				read = append(read, start(b, b.decode))
			}
		}
		if len(read) == 0 {
			return nil
		}
		<-read[0].ended
		then, err := s.apply(read[0].batch)
		if err != nil {
			return err
		}
		start(read[0].batch, then)
		read = read[1:]
	}
}

// errBad ends the stages of a verification: something is bad.
var errBad = errors.New("something is bad")

// run passes the bundle through the stages. When something is bad, the batches
// after it are dropped; those before it have been passed to the workers.
func (v *verifier) run(ctx context.Context) error {
	err := stages{
		workers: v.opts.Workers,
		next: func() (*batch, bool, error) {
			b, more, err := v.lines.batch()
			if more {
				b.log = &v.last
			}
			return b, more, err
		},
		apply: func(b *batch) (func(), error) {
			if v.failed() {
				return nil, errBad
			}
			jobs := v.applyBatch(b)
			if v.opts.Progress != nil {
				v.opts.Progress(v.next, v.head.Size)
			}
			return func() { v.checkAll(ctx, jobs) }, nil
		},
	}.run(ctx)
	if errors.Is(err, errBad) {
		err = nil
	}
	return cmp.Or(err, ctx.Err()) // what was cancelled is no finding
}

// applyBatch applies lines in order, up to the first that cannot be applied.
func (v *verifier) applyBatch(b *batch) []*job {
	var jobs []*job
	for i := range b.parsed {
		p := &b.parsed[i]
		position, id := v.next, "" // where the line should be
		if err := v.applyLine(p, &jobs); err != nil {
			if it := p.item; it != nil {
				if it.Position > position && !v.head.Complete {
					position = it.Position
				}
				if it.intent != nil {
					id = it.intent.id()
				}
			}
			v.fail(position, id, err.Error())
			break
		}
	}
	return jobs
}

func (v *verifier) applyLine(p *parsedLine, jobs *[]*job) error {
	switch {
	case p.err != nil:
		return p.err
	case v.ended:
		return errors.New("there are lines behind the last one")
	case p.Blob != nil:
		v.replayer.keep(p.Blob.Digest, p.Blob.Data)
		return nil
	case p.Tile != nil:
		v.tile = p.Tile
		return nil
	case p.End != nil:
		v.end(p.End, v.lines.endCount, v.lines.endSum)
		return nil
	case p.item == nil:
		return errors.New("a second header")
	}
	it := p.item
	switch {
	case it.Position < v.next:
		return errors.New("positions do not ascend")
	case it.Position > v.next:
		if v.head.Complete {
			return errors.New("records are left out before it, and the bundle says that it is complete")
		}
		v.gaps, v.applier.whole = true, false
	case it.bare && v.head.Complete && v.head.Tenant == "":
		return errors.New("the record is left out, and the bundle says that it is complete")
	}
	v.next = it.Position + 1
	if it.err != nil {
		return it.err
	}
	j, err := v.applier.take(it)
	// A fault found while applying may follow from a changed record: that
	// it is not in the log is then the better reason.
	if !bytes.Equal(it.hash, v.tile.hash(it.Position)) {
		return errors.New("it is not the record that the log has at this position")
	}
	if err != nil {
		return err
	}
	if !it.bare {
		v.report.Records++
		if it.withheld() {
			v.report.Withheld++
		}
		if _, gone := it.Erased[storage.PartTransient]; gone {
			v.report.Ended++
		}
		if it.intent != nil {
			v.report.Intents++
		}
	}
	*jobs = append(*jobs, j)
	return nil
}

func (j *job) id() string {
	if j.intent != nil {
		return j.intent.id()
	}
	if j.about != nil {
		return j.about.intentID
	}
	return ""
}
