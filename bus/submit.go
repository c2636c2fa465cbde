package bus

import (
	"context"
	"encoding/json"
	"time"
)

// AnswerTime is how long to wait for the answer to a signed intent before it is sent again; each
// further wait is twice as long.
const AnswerTime = 10 * time.Second

// maxSent bounds how often an intent is sent: the last time is well within the lifetime of every
// intent.
const maxSent = 4

// Submit sends a signed intent to the routers and waits for its answer until ctx ends. Without an
// answer, because the router died or hangs or the answer was lost, it sends the same bytes again.
// Every router joins identical submissions, so there is one effect and one answer. after is
// time.After.
func Submit(ctx context.Context, conn Conn, signed []byte, after func(time.Duration) <-chan time.Time) ([]byte, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	type answer struct {
		data []byte
		err  error
	}
	answers := make(chan answer, maxSent)
	send := func() {
		data, err := conn.Request(ctx, Intents, signed)
		answers <- answer{data, err}
	}
	go send()
	wait := AnswerTime
	again := after(wait)
	for sent, open := 1, 1; ; {
		select {
		case a := <-answers:
			if open--; open == 0 || a.err == nil && !underWay(a.data) {
				return a.data, a.err
			}
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

// inFlight is the code of a provisional answer, intents.InFlight, which this package cannot
// import.
const inFlight = "IN_FLIGHT"

// underWay reports whether an answer is provisional: the intent is in flight, and another answer
// must be awaited.
func underWay(answer []byte) bool {
	var a struct {
		Code string `json:"code"`
	}
	return json.Unmarshal(answer, &a) == nil && a.Code == inFlight
}
