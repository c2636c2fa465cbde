package jetstream

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"aob.dev/writ/internal/clock"
	"aob.dev/writ/internal/failpoint"
	"aob.dev/writ/storage"
	"aob.dev/writ/storage/internal/codec"
	"aob.dev/writ/storage/internal/group"
	"aob.dev/writ/storage/judge"
)

// Headers of a group.
const (
	headerRouter = "Writ-Router"
	headerNonce  = "Writ-Nonce"
)

const (
	// groupBytes is about how many bytes of parts a group has at most, beyond its first commit.
	groupBytes = 1 << 20
	// publishTime is how long a server has to acknowledge; then the publish is repeated.
	publishTime = 2 * time.Second
	// moveAfter so long in vain the router goes to another server.
	moveAfter = 5 * time.Second
	// retryPause is the pause before that.
	retryPause = 50 * time.Millisecond
)

// write answers every request of a batch, and those that are to be alone after all others.
func (j *Journal) write(ctx context.Context, batch []*group.Request) {
	alone := func(r *group.Request) bool { return r.Exclusive != nil }
	for together := slices.DeleteFunc(slices.Clone(batch), alone); len(together) > 0; {
		together = j.writeGroup(ctx, together)
	}
	j.Lone(ctx, batch)
}

// errBehind reports that another router has written there.
var errBehind = errors.New("another router has written")

// writeGroup writes as many requests as go into one message, answers them, and returns the
// rest.
func (j *Journal) writeGroup(ctx context.Context, batch []*group.Request) []*group.Request {
	for {
		if err := j.Failure(); err != nil {
			group.AnswerAll(batch, err)
			return nil
		}
		d, n, seq := j.judge(batch)
		var err error
		if len(d.Entries) > 0 {
			failpoint.Hit(failpoint.JournalJudged)
			err = j.mayWrite()
			if errors.Is(err, errFollows) {
				group.AnswerAll(batch[:n], err)
				return batch[n:]
			}
			if err != nil {
				j.Fail(err)
				continue // the failure is answered
			}
			err = j.publish(ctx, d, seq)
			failpoint.Hit(failpoint.JournalPublished)
		}
		switch {
		case errors.Is(err, errBehind):
			j.Fail(ErrSucceeded)
			continue
		case err != nil:
			group.AnswerAll(batch[:n], err)
		default:
			for _, r := range batch[:n] {
				r.Answer <- r.Verdict
			}
			failpoint.Hit(failpoint.JournalAnswered)
		}
		return batch[n:]
	}
}

// judge judges the first n requests against all that was read up to seq, and against each other.
func (j *Journal) judge(batch []*group.Request) (d *judge.Draft, n int, seq uint64) {
	j.Mu.RLock()
	defer j.Mu.RUnlock()
	d = judge.NewDraft(j.State, sync.OnceValue(j.admit))
	size, counted := 0, 0
	for _, r := range batch {
		r.Verdict = r.Judge(d)
		n++
		for ; counted < len(d.Entries); counted++ {
			for _, part := range d.Entries[counted].Record.Parts {
				size += len(part)
			}
		}
		if size > groupBytes {
			break
		}
	}
	return d, n, j.index.Seq
}

func (j *Journal) admit() error {
	if j.options.Admit == nil {
		return nil
	}
	if err := j.options.Admit(); err != nil {
		return fmt.Errorf("%w: %w", storage.ErrNotReady, err)
	}
	return nil
}

// publish a draft that was judged against all up to seq, and show it to the observer. errBehind: something else was
// stored there.
func (j *Journal) publish(ctx context.Context, d *judge.Draft, seq uint64) error {
	g := block{First: d.Entries[0].Record.Position, Commits: d.Commits, entries: d.Entries}
	erased := j.stream.keys.erased.Load()
	data, err := g.encode(func() (uint64, codec.Key, error) { return j.stream.keys.fresh(ctx) })
	if err != nil {
		return err
	}
	stored, err := j.store(ctx, subjectGroup, j.options.Instance, data, seq)
	if err != nil {
		return err
	}
	failpoint.Hit(failpoint.JournalDurable)
	j.Mu.Lock()
	defer j.Mu.Unlock()
	if j.index.Seq < stored { // else the follower was faster
		j.applyGroup(message{seq: stored, router: j.options.Instance}, g, erased)
	}
	return nil
}

// store publishes a message of a router right after seq, and returns its sequence. Without an answer it publishes
// again, until it is known what is stored there.
func (j *Journal) store(ctx context.Context, subject, router string, data []byte, seq uint64) (uint64, error) {
	m := nats.NewMsg(subject)
	m.Data = data
	nonce := rand.Text()
	m.Header.Set(headerRouter, router)
	m.Header.Set(headerNonce, nonce)
	j.Mu.Lock()
	j.nonce, j.stored = nonce, false
	j.Mu.Unlock()
	moved := time.Now()
	for asked := 0; ; asked++ {
		if bound := j.js.Conn().MaxPayload(); int64(len(data)) > bound {
			return 0, fmt.Errorf("a commit of %d bytes is larger than a message of the NATS servers may be, which is %d: nothing is written; raise max_payload there", len(data), bound)
		}
		late, cancel := context.WithTimeout(ctx, publishTime)
		ack, err := j.js.PublishMsg(late, m, jetstream.WithExpectLastSequence(seq), jetstream.WithExpectStream(Stream), jetstream.WithRetryAttempts(0))
		if isBehind(err) {
			// Another router's message is there, or this one, whose answer was lost. A leader
			// that was just deposed may be wrong: then nothing comes.
			err = j.catchUp(late, seq+1)
		}
		cancel()
		switch own, behind := j.at(seq); {
		case ack != nil:
			return ack.Sequence, nil
		case own:
			return seq + 1, nil
		case behind:
			return 0, errBehind
		case asked == 0 && isFull(err): // later it would not be known what became of the first one
			return 0, errors.Join(storage.ErrFull, err)
		case j.Failure() != nil:
			return 0, j.Failure()
		}
		if time.Since(moved) > moveAfter { // this server may be cut off from the others
			_ = j.js.Conn().ForceReconnect()
			moved = time.Now()
		}
		if asked == 0 {
			j.options.Log.WarnContext(ctx, "the journal's servers have not acknowledged a group; it is sent again until they do", slog.String("error", failed(err).Error()))
		}
		if clock.Sleep(ctx, retryPause) != nil {
			return 0, group.ErrClosed
		}
	}
}

// at returns what follows seq: the message that is being written, or another one.
func (j *Journal) at(seq uint64) (own, behind bool) {
	j.Mu.RLock()
	defer j.Mu.RUnlock()
	return j.stored, j.index.Seq > seq
}

// Codes of JetStream's errors.
const (
	codeWrongLast         jetstream.ErrorCode = 10071
	codeWrongLastConstant jetstream.ErrorCode = 10164
	codeAccountFull       jetstream.ErrorCode = 10002
	codeNoResources       jetstream.ErrorCode = 10023
	codeNoStorage         jetstream.ErrorCode = 10047
	codeStoreFailed       jetstream.ErrorCode = 10077
)

func isBehind(err error) bool { return hasCode(err, codeWrongLast, codeWrongLastConstant) }

// isFull: the servers have stored nothing for want of room.
func isFull(err error) bool {
	return hasCode(err, codeAccountFull, codeNoResources, codeNoStorage, codeStoreFailed)
}

func hasCode(err error, codes ...jetstream.ErrorCode) bool {
	var api *jetstream.APIError
	return errors.As(err, &api) && slices.Contains(codes, api.ErrorCode)
}
