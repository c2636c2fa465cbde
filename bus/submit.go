package bus

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"time"

	"aob.dev/writ/internal/clock"
)

// AnswerTime is how long to wait for the answer to a signed intent before it is sent again; each
// further wait is twice as long.
const AnswerTime = 10 * time.Second

// maxSent bounds how often an intent is sent: the last time is well within the lifetime of every
// intent.
const maxSent = 4

// A router that takes over listens within seconds. Until then a request that found no router is sent
// again after each pause, so often.
const (
	absentPause = 250 * time.Millisecond
	maxAbsent   = 40
)

// Submit sends a signed intent, or a batch of them, to the deciding router and waits for its answer
// until ctx ends. Without an answer, because the router died or hangs or the answer was lost, it sends
// the same bytes again. The router joins identical submissions, so there is one effect and one answer.
// ErrNoResponders: no router has listened for ten seconds, and there was no effect that an answer
// could tell of. after is time.After.
func Submit(ctx context.Context, conn Conn, subject string, signed []byte, after func(time.Duration) <-chan time.Time) ([]byte, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	type answer struct {
		data []byte
		err  error
	}
	answers := make(chan answer, maxSent+maxAbsent)
	send := func() {
		data, err := conn.Request(ctx, subject, signed)
		answers <- answer{data, err}
	}
	go send()
	wait := AnswerTime
	again, there := after(wait), (<-chan time.Time)(nil)
	for sent, open, absent := 1, 1, 0; ; {
		select {
		case a := <-answers:
			open--
			switch {
			case a.err == nil && !underWay(a.data):
				return a.data, nil
			case open > 0 || there != nil:
			case errors.Is(a.err, ErrNoResponders) && absent < maxAbsent:
				absent++
				there = after(absentPause)
			default:
				return a.data, a.err
			}
		case <-there:
			there, open = nil, open+1
			go send()
		case <-again:
			sent, open = sent+1, open+1
			go send()
			again = nil
			if sent < maxSent {
				wait *= 2
				again = after(wait)
			}
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// askAgain is how long to wait for the answer to a question before it is asked again.
const askAgain = 2 * time.Second

// Ask asks the deciding router a question, which changes nothing, until it answers or ctx ends.
// ErrNoResponders: no router has listened for ten seconds.
func Ask(ctx context.Context, conn Conn, subject string, question []byte) ([]byte, error) {
	for absent := 0; ; {
		once, cancel := context.WithTimeout(ctx, askAgain)
		data, err := conn.Request(once, subject, question)
		cancel()
		switch {
		case err == nil || ctx.Err() != nil:
			return data, err
		case errors.Is(err, context.DeadlineExceeded):
		case !errors.Is(err, ErrNoResponders) || absent == maxAbsent:
			return nil, err
		default:
			absent++
			if err := clock.Sleep(ctx, absentPause); err != nil {
				return nil, err
			}
		}
	}
}

// inFlight is the code of a provisional answer, intents.InFlight, which this package cannot
// import.
const inFlight = "IN_FLIGHT"

// underWay reports whether an answer is provisional: the intent is in flight, and another answer
// must be awaited.
func underWay(answer []byte) bool {
	if !bytes.Contains(answer, []byte(inFlight)) { // nearly all: it spares reading large results
		return false
	}
	var a struct {
		Code string `json:"code"`
	}
	return json.Unmarshal(answer, &a) == nil && a.Code == inFlight
}
