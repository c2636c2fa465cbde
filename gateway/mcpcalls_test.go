package gateway

import (
	"testing"

	wire "github.com/mark3labs/mcp-go/mcp"
)

// TestRepeats: a call with the same id is a repetition while its answer has not been given. After
// the answer, or with other arguments, another tool or another session, it is another call.
func TestRepeats(t *testing.T) {
	r := newRepeats()
	r.bound = 2
	pay := wire.CallToolParams{Name: "bank__pay", RawArguments: []byte(`{"n":1}`)}
	first, done := r.begin("s", "1", pay)
	again, doneAgain := r.begin("s", "1", pay)
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
		name, ended := r.begin(at.session, at.id, at.call)
		if name == first {
			t.Errorf("%s: the same call", what)
		}
		ended(true)
	}
	done(false) // its client disconnected
	doneAgain(false)
	third, gone := r.begin("s", "1", pay)
	if third != first {
		t.Error("what a client did not get to hear is another call when it is sent again")
	}
	gone(true)
	next, _ := r.begin("s", "1", pay)
	if next == first {
		t.Error("an id that was answered is no repeat")
	}
	newest := ""
	for _, id := range []string{"2", "3", "4", "5"} {
		name, ended := r.begin("s", id, pay)
		ended(false)
		newest = name
	}
	if len(r.open) > 2 {
		t.Errorf("%d calls are remembered", len(r.open))
	}
	if name, _ := r.begin("s", "5", pay); name != newest {
		t.Error("not the oldest is forgotten")
	}
	if name, _ := r.begin("s", "1", pay); name != next {
		t.Error("a call under way is forgotten")
	}
}
