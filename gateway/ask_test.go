package gateway

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"aob.dev/writ/bus"
	"aob.dev/writ/intents"
	"aob.dev/writ/internal/problem"
)

// silent is a connection on which nobody answers: err at once, or nothing.
type silent struct {
	bus.Conn
	err  error
	sent int
}

func (c *silent) Request(ctx context.Context, _ string, _ []byte) ([]byte, error) {
	if c.sent++; c.err != nil {
		return nil, c.err
	}
	<-ctx.Done()
	return nil, ctx.Err()
}

// A request may begin something: it is sent once, and who is not there is found out at once. A question
// to the router is asked again, for as long as another one may take over.
func TestAskedAgain(t *testing.T) {
	type question func(context.Context, bus.Conn, string, any) (struct{}, error)
	for name, c := range map[string]struct {
		ask  question
		err  error
		sent int
		took time.Duration
		code intents.Code
	}{
		"a request, nobody there":    {ask[struct{}], bus.ErrNoResponders, 1, 0, intents.DispatchUnavailable},
		"a request without answer":   {ask[struct{}], nil, 1, askTimeout, intents.ExecutorTimeout},
		"a question, nobody there":   {askRouter[struct{}], bus.ErrNoResponders, 41, 10 * time.Second, intents.DispatchUnavailable},
		"a question without answers": {askRouter[struct{}], nil, 8, routerTimeout, intents.ExecutorTimeout},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				conn, began := &silent{err: c.err}, time.Now()
				_, err := c.ask(t.Context(), conn, "subject", nil)
				if p := problem.FromError(err); p.Code != c.code || conn.sent != c.sent || time.Since(began) != c.took {
					t.Errorf("%v, sent %d times in %s", err, conn.sent, time.Since(began))
				} else if p.Code == intents.DispatchUnavailable && p.RetryAfter == 0 {
					t.Error("it does not say when to try again")
				}
			})
		})
	}
}
