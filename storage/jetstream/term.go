package jetstream

import (
	"context"
	"errors"
	"fmt"
)

// ErrSucceeded is the failure of a journal that has led: another process leads, or may lead soon.
var ErrSucceeded = errors.New("another router decides")

// Lead makes this process the one that writes. It reads to the end of the stream, stores a term right
// after that, and returns once everything up to the term was read. From then on the journal fails,
// with ErrSucceeded, if another process has stored anything, or if may returns an error before
// something is stored.
//
// Crash: before the term, nothing is left; after it, a term without records, which the next one
// follows. It is called once, and concurrently with reads alone.
func (j *Journal) Lead(ctx context.Context, may func() error) error {
	return j.DoAlone(ctx, func(ctx context.Context) error {
		for {
			if err := errors.Join(j.Fresh(ctx), may()); err != nil {
				return fmt.Errorf("lead: %w", err)
			}
			stored, err := j.store(ctx, subjectTerm, j.options.Instance, nil, j.lastSeq())
			switch {
			case errors.Is(err, errBehind):
				continue // somebody has written before the term
			case err != nil:
				return fmt.Errorf("lead: %w", err)
			}
			if err := j.apply(ctx, message{seq: stored, term: true, router: j.options.Instance}); err != nil {
				return err
			}
			j.Mu.Lock()
			defer j.Mu.Unlock()
			if j.index.Seq != stored {
				return fmt.Errorf("lead: %w", ErrSucceeded)
			}
			j.may = may
			return nil
		}
	})
}

// errFollows is the refusal to write of a process that does not lead.
var errFollows = errors.New("this process does not lead")

// mayWrite is the reason why a process must not store anything: it does not lead, or not any more. The
// first message of a stream needs no leader.
func (j *Journal) mayWrite() error {
	j.Mu.RLock()
	may, first := j.may, j.index.Seq == 0
	j.Mu.RUnlock()
	switch {
	case may == nil && first:
		return nil
	case may == nil:
		return errFollows
	}
	if err := may(); err != nil {
		return fmt.Errorf("%w: %w", ErrSucceeded, err)
	}
	return nil
}

// applyTerm passes a term over.
func (j *Journal) applyTerm(m message) error {
	j.Mu.Lock()
	defer j.Mu.Unlock()
	if m.seq <= j.index.Seq {
		return nil
	}
	if m.nonce != "" && m.nonce == j.nonce {
		j.stored = true
	}
	if err := j.succeeded(m); err != nil {
		return err
	}
	j.index.Seq = m.seq
	j.wake()
	return nil
}

// succeeded reports that a message is another process's although this one leads. The lock is held.
func (j *Journal) succeeded(m message) error {
	if j.may == nil || m.router == j.options.Instance {
		return nil
	}
	return fmt.Errorf("%w: %s", ErrSucceeded, m.router)
}
