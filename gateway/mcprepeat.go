package gateway

import (
	"maps"
	"sync"
	"time"

	wire "github.com/mark3labs/mcp-go/mcp"

	"aob.dev/writ/intents"
)

// repeats says which calls of a caller's sessions are the same one. Clients use ids of JSON-RPC as they like, some
// one id for every request, so an id says that a call is sent again only until the answer was given: while the
// first is under way, and after a client went away without it. A call that only reads is the same for a few seconds
// more, since its answer may have been lost on the way, and until another call may have changed what it reads.
type repeats struct {
	now   func() time.Time
	mu    sync.Mutex // guards open
	open  map[string]*repeat
	bound int // of those for which nobody waits
}

// repeat is a call that may be sent again.
type repeat struct {
	name    string
	waiting int       // requests that wait for it now
	until   time.Time // of one that was answered; zero: it was not
}

// maxRepeats bounds what is remembered for each caller, and readAgain is for how long a call that only reads is.
const (
	maxRepeats = 1000
	readAgain  = 10 * time.Second
)

func newRepeats(now func() time.Time) *repeats {
	return &repeats{now: now, open: make(map[string]*repeat), bound: maxRepeats}
}

// begin names the call that a request is of. ended says that the request is over, and whether its client was
// answered.
func (r *repeats) begin(session, id string, call wire.CallToolParams, reads bool) (name string, ended func(answered bool)) {
	of := intents.Digest([]byte(session + "\n" + id + "\n" + call.Name + "\n" + string(call.RawArguments)))
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.now()
	maps.DeleteFunc(r.open, func(_ string, at *repeat) bool { return !at.until.IsZero() && (!reads || !now.Before(at.until)) })
	at := r.open[of]
	if at == nil {
		at = &repeat{name: `"` + newID("call") + `"`}
		r.open[of] = at
	}
	at.waiting++
	return at.name, func(answered bool) {
		r.mu.Lock()
		defer r.mu.Unlock()
		at.waiting--
		switch {
		case !answered || r.open[of] != at:
		case !reads:
			delete(r.open, of)
		case at.until.IsZero():
			at.until = r.now().Add(readAgain)
		}
		r.makeRoom()
	}
}

// makeRoom forgets a call for which nobody waits, if there are too many.
func (r *repeats) makeRoom() {
	if len(r.open) <= r.bound {
		return
	}
	for of, at := range r.open {
		if at.waiting == 0 {
			delete(r.open, of)
			return
		}
	}
}
