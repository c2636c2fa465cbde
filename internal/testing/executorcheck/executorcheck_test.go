package executorcheck

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"aob.dev/writ/bus"
	"aob.dev/writ/intents"
	"aob.dev/writ/internal/testing/ticketvectors"
)

// answering is a bus on which a service answers each dispatch.
type answering struct {
	bus.Conn
	answer func(data []byte) []byte
}

func (a answering) Request(_ context.Context, _ string, data []byte) ([]byte, error) {
	return a.answer(data), nil
}

// TestCheckIsFresh: however slow a service is, no vector is older than a second when it
// comes, so that none is refused for its age alone; and a service that refuses everything for its
// age passes no forgery.
func TestCheckIsFresh(t *testing.T) {
	keys, err := ticketvectors.NewKeys()
	if err != nil {
		t.Fatal(err)
	}
	now, sent := time.Now(), 0
	report := func(r intents.Report) []byte {
		raw, _ := json.Marshal(r)
		return raw
	}
	c := &Check{now: func() time.Time { return now }, keys: keys, target: ticketvectors.Target{Executor: "echo", Types: []string{"x.acme.echo"}, Args: json.RawMessage(`{}`)}}
	c.conn = answering{answer: func(data []byte) []byte {
		sent++
		var d intents.Dispatch
		var claims intents.Ticket
		if json.Unmarshal(data, &d) == nil && intents.PeekClaims(d.Ticket, &claims) == nil && claims.Deadline.After(now.Add(9*time.Second)) {
			now = now.Add(8 * time.Second) // slow
			return report(intents.Report{Status: intents.Failed, Code: intents.SignatureInvalid})
		}
		now = now.Add(8 * time.Second)
		return report(intents.Report{Status: intents.Failed, Code: intents.ExecutorTimeout})
	}}
	late := 0
	if err := c.Run(t.Context(), func(r Result) {
		if r.Got == intents.ExecutorTimeout && r.Expect == intents.SignatureInvalid && r.Name != "" {
			late++
			if r.OK {
				t.Errorf("%s passes by its age", r.Name)
			}
		}
	}); err != nil {
		t.Fatal(err)
	}
	if sent < 30 || late > sent/2 {
		t.Errorf("%d of %d came late", late, sent)
	}
}
