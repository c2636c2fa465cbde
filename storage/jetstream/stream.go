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
	subjectGroup = "journal.group"
	subjectTerm  = "journal.term"
	subjectAll   = "journal.>"
)

// patiently retries while servers do not answer, or none of them stores anything yet.
func patiently[A any](ctx context.Context, ask func(context.Context) (A, error)) (A, error) {
	return bus.RetryUntilReady(ctx, "stream "+Stream, ask, nats.ErrNoResponders, jetstream.ErrNoStreamResponse)
}

// Create makes the streams of a cell, with as many replicas, however long the servers need. One
// that is there stays, and is refused if it would lose or change what is in it.
func Create(ctx context.Context, js jetstream.JetStream, replicas int) error {
	for _, of := range []jetstream.StreamConfig{
		{Name: Stream, Description: "writ: records of the journal", Subjects: []string{subjectAll}},
		{Name: KeyStream, Description: "writ: keys of erasable parts of the journal", Subjects: []string{subjectKey}},
	} {
		s, err := patiently(ctx, func(ctx context.Context) (jetstream.Stream, error) { return create(ctx, js, of, replicas) })
		if err != nil {
			return failed(err)
		}
		if err := fit(s.CachedInfo().Config, of.Subjects[0]); err != nil {
			return err
		}
	}
	return nil
}

func create(ctx context.Context, js jetstream.JetStream, of jetstream.StreamConfig, replicas int) (jetstream.Stream, error) {
	of.Storage, of.Discard, of.MaxMsgs, of.MaxBytes, of.Replicas = jetstream.FileStorage, jetstream.DiscardNew, -1, -1, replicas
	// AllowDirect is off: a lagging replica would miss the latest write.
	s, err := js.CreateStream(ctx, of)
	if errors.Is(err, jetstream.ErrStreamNameAlreadyInUse) {
		return js.Stream(ctx, of.Name)
	}
	return s, err
}

// open the streams, which must be there.
func open(ctx context.Context, js jetstream.JetStream) (m messages, err error) {
	if m.Stream, err = existing(ctx, js, Stream, subjectAll); err != nil {
		return m, err
	}
	keys, err := existing(ctx, js, KeyStream, subjectKey)
	m.keys = newKeyFiles(js, keys)
	return m, err
}

func existing(ctx context.Context, js jetstream.JetStream, name, subject string) (jetstream.Stream, error) {
	s, err := patiently(ctx, func(ctx context.Context) (jetstream.Stream, error) { return js.Stream(ctx, name) })
	if err != nil {
		return nil, failed(err)
	}
	return s, fit(s.CachedInfo().Config, subject)
}

// failed describes why the servers do not return the stream.
func failed(err error) error {
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		err = &egress.ReasonError{Message: "there is no such stream: the first router of the cell makes it, or writ admin cell begin", Mend: egress.Name, Err: err}
	}
	return bus.Fault("stream "+Stream, err)
}

// fit returns why a stream cannot be a journal.
func fit(is jetstream.StreamConfig, subject string) error {
	var why string
	switch {
	case len(is.Subjects) != 1 || is.Subjects[0] != subject:
		why = fmt.Sprintf("its subjects are %q, not %q", is.Subjects, subject)
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
	return fmt.Errorf("stream %s cannot be of a journal: %s", is.Name, why)
}
