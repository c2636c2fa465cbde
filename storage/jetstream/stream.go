package jetstream

import (
	"context"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"aob.dev/writ/bus"
	"aob.dev/writ/internal/egress"
)

// Stream is the name of the stream.
const Stream = "JOURNAL"

// Subjects of the stream.
const (
	subjectGroup  = "journal.group"
	subjectErased = "journal.erased."
	subjectAll    = "journal.>"
)

// patiently retries while servers do not answer, or none of them stores anything yet.
func patiently[A any](ctx context.Context, ask func(context.Context) (A, error)) (A, error) {
	return bus.RetryUntilReady(ctx, "stream "+Stream, ask, nats.ErrNoResponders, jetstream.ErrNoStreamResponse)
}

// Create makes the stream of a cell, with as many replicas, however long the servers need. One
// that is there stays, and is refused if it would lose or change what is in it.
func Create(ctx context.Context, js jetstream.JetStream, replicas int) error {
	s, err := patiently(ctx, func(ctx context.Context) (jetstream.Stream, error) { return create(ctx, js, replicas) })
	if err != nil {
		return failed(err)
	}
	return fit(s.CachedInfo().Config)
}

func create(ctx context.Context, js jetstream.JetStream, replicas int) (jetstream.Stream, error) {
	s, err := js.CreateStream(ctx, jetstream.StreamConfig{
		Name: Stream, Description: "writ: records of the journal", Subjects: []string{subjectAll},
		Storage: jetstream.FileStorage, Discard: jetstream.DiscardNew, MaxMsgs: -1, MaxBytes: -1, Replicas: replicas,
		// AllowDirect is off: a lagging replica would miss the latest write.
	})
	if errors.Is(err, jetstream.ErrStreamNameAlreadyInUse) {
		return js.Stream(ctx, Stream)
	}
	return s, err
}

// open the stream, which must be there.
func open(ctx context.Context, js jetstream.JetStream) (jetstream.Stream, error) {
	s, err := patiently(ctx, func(ctx context.Context) (jetstream.Stream, error) { return js.Stream(ctx, Stream) })
	if err != nil {
		return nil, failed(err)
	}
	return s, fit(s.CachedInfo().Config)
}

// failed describes why the servers do not return the stream.
func failed(err error) error {
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		err = &egress.ReasonError{Message: "there is no such stream: the first router of the cell makes it, or writ admin cell begin", Mend: egress.Name, Err: err}
	}
	return bus.Fault("stream "+Stream, err)
}

// fit returns why a stream cannot be a journal.
func fit(is jetstream.StreamConfig) error {
	var why string
	switch {
	case len(is.Subjects) != 1 || is.Subjects[0] != subjectAll:
		why = fmt.Sprintf("its subjects are %q, not %q", is.Subjects, subjectAll)
	case is.Storage != jetstream.FileStorage:
		why = "it is in memory"
	case is.MaxAge != 0 || is.MaxMsgs > 0 || is.MaxMsgsPerSubject > 0 || is.Discard != jetstream.DiscardNew || is.Retention != jetstream.LimitsPolicy:
		why = "it drops old messages"
	case is.AllowDirect && is.Replicas > 1:
		why = "a replica that is behind may answer: turn allow_direct off"
	case is.MaxMsgSize > 0:
		why = "a commit that is larger than its messages may be would be tried again for good: turn max_msg_size off"
	case is.DenyDelete:
		why = "nothing can be erased from it: turn deny_delete off"
	default:
		return nil
	}
	return fmt.Errorf("stream %s cannot be a journal: %s", Stream, why)
}
