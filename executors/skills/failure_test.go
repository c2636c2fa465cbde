package skills_test

import (
	"context"
	"encoding/json"
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	wire "github.com/mark3labs/mcp-go/mcp"

	"aob.dev/writ/intents"
	"aob.dev/writ/internal/testing/executortest"
)

// TestTransport: an executor reports whether the server of a call worked. What it answers, and what
// is wrong with an intent or with another server, is no failure of it.
func TestTransport(t *testing.T) {
	works := tool{name: "x", input: `{"type":"object","properties":{"n":{"type":"integer"}}}`, handle: answer("", "done")}
	hangs := works
	hangs.handle = func(ctx context.Context, _ wire.CallToolRequest) (*wire.CallToolResult, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	says := works
	says.handle = func(context.Context, wire.CallToolRequest) (*wire.CallToolResult, error) {
		return wire.NewToolResultError("no such customer"), nil
	}
	answers := func(status int, body string) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(status)
			_, _ = w.Write([]byte(body))
		})
	}
	fine, sick := &intents.Transport{Sent: true}, &intents.Transport{Sent: true, Failure: true}
	for _, tt := range []struct {
		name     string
		tool     tool
		approved http.Handler // after the skill was approved and is connected; nil: the same
		input    string
		want     *intents.Transport
	}{
		{"done", works, nil, `{}`, fine},
		{"an error of the tool", says, nil, `{}`, fine},
		{"input that does not fit", works, nil, `{"n":"one"}`, nil},
		{"other credentials", works, answers(http.StatusUnauthorized, `{}`), `{}`, fine},
		{"HTTP 503", works, answers(http.StatusServiceUnavailable, `{}`), `{}`, sick},
		{"half an answer", works, answers(http.StatusOK, `{"jsonrpc":"2.0","id":`), `{}`, sick},
		{"cut off", works, down, `{}`, sick},
		{"silence", hangs, nil, `{}`, sick},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newSite(t, serverOf(tt.tool))
			b := open(t, map[string]*site{"crm": s})
			pin := b.ids(t)["crm.x"]
			pin.Effect = "once" // it is not sent again
			in := named(pin, "crm.x")
			in.Args = map[string]any{"skill": "crm.x", "input": json.RawMessage(tt.input)}
			if tt.approved != nil {
				s.become(tt.approved)
			}
			in.Ticket.Deadline = b.now().Add(500 * time.Millisecond)
			r := b.Do(t, in)
			if d := cmp.Diff(tt.want, r.Transport); d != "" {
				t.Errorf("%s %s (-want +got):\n%s", r.Code, r.Reason, d)
			}
		})
	}
}

// TestTransportOfListing: a server that cannot be asked for its tools has failed, and no other has.
func TestTransportOfListing(t *testing.T) {
	mine, other := newSite(t, serverOf(tool{name: "x", handle: answer("", "done")})), newSite(t, serverOf(tool{name: "y", handle: answer("", "done")}))
	b := open(t, map[string]*site{"crm": mine, "erp": other})
	pins := b.ids(t)
	first, second := named(pins["crm.x"], "crm.x"), named(pins["erp.y"], "erp.y")
	mine.become(down)
	b.clock.Add(60) // what was listed is old
	want := func(in executortest.Intent, want *intents.Transport) {
		t.Helper()
		if r := b.Do(t, in); !cmp.Equal(r.Transport, want) {
			t.Errorf("%+v", r)
		}
	}
	want(first, &intents.Transport{Failure: true})
	want(second, &intents.Transport{Sent: true})
	other.become(serverOf())
	b.clock.Add(60)
	want(second, nil) // gone, while another server is down
}
