package bus

import (
	"context"
	"errors"
	"testing"
	"time"

	"aob.dev/writ/intents"
)

// answeredConn is a Conn whose requests are answered by a test.
type answeredConn struct {
	Conn
	requests chan chan reply
}

type reply struct {
	data string
	err  error
}

func (a answeredConn) Request(ctx context.Context, _ string, data []byte) ([]byte, error) {
	if string(data) != "signed" {
		return nil, errors.New("other bytes are sent again")
	}
	answer := make(chan reply, 1)
	select {
	case a.requests <- answer:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	select {
	case r := <-answer:
		return []byte(r.data), r.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// TestSubmit: an intent without an answer is sent again, the same bytes, after ten seconds and
// then at growing intervals. The first final answer counts, whichever request it belongs to.
func TestSubmit(t *testing.T) {
	const inFlight = `{"code":"` + string(intents.InFlight) + `"}`
	type to struct {
		request int
		reply
	}
	for name, x := range map[string]struct {
		sent    int
		answers []to
		want    reply
	}{
		"answered at once":            {1, []to{{0, reply{"a", nil}}}, reply{"a", nil}},
		"it is under way":             {1, []to{{0, reply{inFlight, nil}}}, reply{inFlight, nil}},
		"the first is lost":           {2, []to{{1, reply{"b", nil}}}, reply{"b", nil}},
		"the first is late":           {2, []to{{0, reply{"a", nil}}}, reply{"a", nil}},
		"no router for a while":       {3, []to{{1, reply{"", ErrNoResponders}}, {2, reply{"c", nil}}}, reply{"c", nil}},
		"too many wait for the first": {2, []to{{1, reply{inFlight, nil}}, {0, reply{"a", nil}}}, reply{"a", nil}},
		"three are lost":              {4, []to{{3, reply{"d", nil}}}, reply{"d", nil}},
	} {
		t.Run(name, func(t *testing.T) {
			conn := answeredConn{requests: make(chan chan reply)}
			waits, pass := make(chan time.Duration, maxSent), make(chan time.Time)
			after := func(d time.Duration) <-chan time.Time { waits <- d; return pass }
			got := make(chan reply, 1)
			go func() {
				data, err := Submit(t.Context(), conn, Intents, []byte("signed"), after)
				got <- reply{string(data), err}
			}()
			var sent []chan reply
			for i := range x.sent {
				if i > 0 {
					pass <- time.Time{}
				}
				sent = append(sent, <-conn.requests)
				if i < maxSent-1 {
					if d := <-waits; d != AnswerTime<<i {
						t.Errorf("wait %d is %s", i, d)
					}
				}
			}
			for _, a := range x.answers {
				sent[a.request] <- a.reply
			}
			if r := <-got; r.data != x.want.data || !errors.Is(r.err, x.want.err) {
				t.Errorf("%+v, want %+v", r, x.want)
			}
		})
	}
}

// TestSubmitToNobody: an intent that finds no router is sent again for ten seconds, in which one may
// take over.
func TestSubmitToNobody(t *testing.T) {
	for name, absent := range map[string]int{"until one listens": maxAbsent, "in vain": maxAbsent + 1} {
		t.Run(name, func(t *testing.T) {
			conn := answeredConn{requests: make(chan chan reply)}
			now := make(chan time.Time)
			close(now)
			waited := time.Duration(0)
			after := func(d time.Duration) <-chan time.Time {
				if d == AnswerTime {
					return nil
				}
				waited += d
				return now
			}
			got := make(chan reply, 1)
			go func() {
				data, err := Submit(t.Context(), conn, Intents, []byte("signed"), after)
				got <- reply{string(data), err}
			}()
			for range absent {
				(<-conn.requests) <- reply{"", ErrNoResponders}
			}
			want := reply{"", ErrNoResponders}
			if absent <= maxAbsent {
				(<-conn.requests) <- reply{"a", nil}
				want = reply{"a", nil}
			}
			if r := <-got; r.data != want.data || !errors.Is(r.err, want.err) || waited != 10*time.Second {
				t.Errorf("%+v after %s, want %+v", r, waited, want)
			}
		})
	}
}
