package gateway

import (
	"testing"
	"time"

	wire "github.com/mark3labs/mcp-go/mcp"
)

// TestRepeats: a call with the same id is a repetition while its answer has not been given. After
// the answer, or with other arguments, another tool or another session, it is another call.
func TestRepeats(t *testing.T) {
	r := newRepeats(time.Now)
	r.bound = 2
	pay := wire.CallToolParams{Name: "bank__pay", RawArguments: []byte(`{"n":1}`)}
	first, done := r.begin("s", "1", pay, false)
	again, doneAgain := r.begin("s", "1", pay, false)
	if first != again {
		t.Error("a resend while the first is under way is another call")
	}
	for what, at := range map[string]struct {
		session, id string
		call        wire.CallToolParams
	}{
		"other arguments": {"s", "1", wire.CallToolParams{Name: "bank__pay", RawArguments: []byte(`{"n":2}`)}},
		"another tool":    {"s", "1", wire.CallToolParams{Name: "bank__rates", RawArguments: []byte(`{"n":1}`)}},
		"another session": {"t", "1", pay},
		"another id":      {"s", `"1"`, pay},
	} {
		name, ended := r.begin(at.session, at.id, at.call, false)
		if name == first {
			t.Errorf("%s: the same call", what)
		}
		ended(true)
	}
	done(false) // its client disconnected
	doneAgain(false)
	third, gone := r.begin("s", "1", pay, false)
	if third != first {
		t.Error("what a client did not get to hear is another call when it is sent again")
	}
	gone(true)
	next, _ := r.begin("s", "1", pay, false)
	if next == first {
		t.Error("an id that was answered is no repeat")
	}
	newest := ""
	for _, id := range []string{"2", "3", "4", "5"} {
		name, ended := r.begin("s", id, pay, false)
		ended(false)
		newest = name
	}
	if len(r.open) > 2 {
		t.Errorf("%d calls are remembered", len(r.open))
	}
	if name, _ := r.begin("s", "5", pay, false); name != newest {
		t.Error("not the oldest is forgotten")
	}
	if name, _ := r.begin("s", "1", pay, false); name != next {
		t.Error("a call under way is forgotten")
	}
}

// TestRepeatedRead: a repeated call that only reads gets the first answer for a few seconds,
// since it may have been lost, unless something may have changed since.
func TestRepeatedRead(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	r := newRepeats(func() time.Time { return now })
	rates, pay := wire.CallToolParams{Name: "bank__rates"}, wire.CallToolParams{Name: "bank__pay"}
	read := func() string {
		name, ended := r.begin("s", "1", rates, true)
		ended(true)
		return name
	}
	first := read()
	now = now.Add(readRepeat - time.Second)
	if read() != first {
		t.Error("a read that is sent again at once is another call")
	}
	now = now.Add(time.Second)
	second := read()
	if second == first {
		t.Error("an old answer serves a read")
	}
	_, paid := r.begin("s", "1", pay, false)
	paid(true)
	if read() == second {
		t.Error("a read shows what was before a payment")
	}
}
