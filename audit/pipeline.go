package audit

import (
	"context"
	"errors"
	"io"

	"aob.dev/writ/intents"
)

// Batches bound what is in memory: lines are handed on together.
const (
	batchLines = 256
	batchBytes = 2 << 20
)

// batch is some lines on their way.
type batch struct {
	raw     [][]byte
	cut     bool     // the last line is not whole
	climber *climber // nil: whether leaves are in the log is not asked
	parsed  []parsed
	decoded chan struct{}
}

// parsed is a line taken apart.
type parsed struct {
	line
	item *item
	err  error
}

// read makes a batch of the next lines; nil at the end.
func (l *lines) batch() (*batch, error) {
	b := &batch{decoded: make(chan struct{})}
	for size := 0; len(b.raw) < batchLines && size < batchBytes; {
		raw, err := l.next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil && !errors.Is(err, errCut) {
			return nil, err
		}
		b.raw = append(b.raw, raw)
		size += len(raw)
		if b.cut = err != nil; b.cut {
			break
		}
	}
	if len(b.raw) == 0 {
		return nil, nil
	}
	return b, nil
}

// decode takes the lines apart, on a worker.
func (b *batch) decode() {
	defer close(b.decoded)
	b.parsed = make([]parsed, len(b.raw))
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
			p.item = bareItem(p.Leaf)
		case p.Blob != nil && intents.Digest(p.Blob.Data) != p.Blob.Digest:
			p.err = errors.New("a blob is not what its digest says: " + p.Blob.Digest)
			return
		}
		if p.item != nil && b.climber != nil {
			p.item.out = !b.climber.includes(p.item)
		}
	}
}

// run takes the bundle through the pipeline. When something is bad, the batches
// behind it are left; what stands before it has been handed to the workers.
func (v *verifier) run(ctx context.Context) error {
	slots := make(chan struct{}, v.opts.Workers)
	defer func() {
		for range cap(slots) { // wait for the workers
			slots <- struct{}{}
		}
	}()
	var queue []*batch
	for more := true; ctx.Err() == nil && !v.failed(); {
		for more && len(queue) <= v.opts.Workers {
			b, err := v.lines.batch()
			if err != nil {
				return err
			}
			if more = b != nil; more {
				b.climber = &climber{log: v.last}
				queue = append(queue, b)
				work(slots, b.decode)
			}
		}
		if len(queue) == 0 {
			break
		}
		b := queue[0]
		queue = queue[1:]
		<-b.decoded
		jobs := v.foldBatch(b)
		work(slots, func() { v.checkAll(ctx, jobs) })
		if v.opts.Progress != nil {
			v.opts.Progress(v.next, v.head.Size)
		}
	}
	return ctx.Err()
}

// work runs fn on a worker as soon as one is free.
func work(slots chan struct{}, fn func()) {
	slots <- struct{}{}
	go func() {
		defer func() { <-slots }()
		fn()
	}()
}

// foldBatch folds lines in order, up to the first that cannot be.
func (v *verifier) foldBatch(b *batch) []*job {
	var jobs []*job
	for i := range b.parsed {
		p := &b.parsed[i]
		position, id := v.next, "" // where the line should be
		if err := v.foldLine(p, &jobs); err != nil {
			if it := p.item; it != nil {
				if it.position > position && !v.head.Complete {
					position = it.position
				}
				if it.order != nil {
					id = it.order.id()
				}
			}
			v.fail(position, id, err.Error())
			break
		}
	}
	return jobs
}

func (v *verifier) foldLine(p *parsed, jobs *[]*job) error {
	switch {
	case p.err != nil:
		return p.err
	case v.ended:
		return errors.New("there are lines behind the last one")
	case p.Blob != nil:
		v.replayer.keep(p.Blob.Digest, p.Blob.Data)
		return nil
	case p.End != nil:
		v.end(p.End, v.lines.endCount, v.lines.endSum)
		return nil
	case p.item == nil:
		return errors.New("a second header")
	}
	it := p.item
	switch {
	case it.position < v.next:
		return errors.New("positions do not ascend")
	case it.position > v.next:
		if v.head.Complete {
			return errors.New("records are left out before it, and the bundle says that it is complete")
		}
		v.gaps, v.fold.whole = true, false
	case it.entry == nil && v.head.Complete && v.head.Tenant == "":
		return errors.New("the record is left out, and the bundle says that it is complete")
	}
	v.next = it.position + 1
	if it.err != nil {
		return it.err
	}
	j, err := v.fold.take(it)
	// What the fold finds wrong may follow from a record that was changed: that
	// it is not in the log is then the better reason.
	if it.out {
		return errNotIncluded
	}
	if err != nil {
		return err
	}
	if it.entry != nil {
		v.report.Records++
		if it.withheld {
			v.report.Withheld++
		}
		if it.order != nil {
			v.report.Orders++
		}
		if it.entry.Receipt != "" {
			v.report.Receipts++
		}
		v.know(j.keys)
	}
	*jobs = append(*jobs, j)
	return nil
}

// know remembers the versions of the key set.
func (v *verifier) know(set *keySet) {
	if set == nil || len(v.sets) > 0 && v.sets[len(v.sets)-1] == set {
		return
	}
	v.sets = append(v.sets, set)
}

func (j *job) id() string {
	if j.order != nil {
		return j.order.id()
	}
	if j.about != nil {
		return j.about.intentID
	}
	return ""
}
