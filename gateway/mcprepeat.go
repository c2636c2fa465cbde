package gateway

import (
	"sync"

	wire "github.com/mark3labs/mcp-go/mcp"

	"aob.dev/writ/intents"
)

// repeats says which calls of a caller's sessions are the same one. Clients use ids of JSON-RPC as they like, some
// one id for every request, so an id says that a call is sent again only until the answer was given: while the
// first is under way, and after a client went away without it.
type repeats struct {
	mu    sync.Mutex // guards open
	open  map[string]*repeat
	bound int // of those whose client went away
}

// repeat is a call whose answer nobody has been given.
type repeat struct {
	name    string
	waiting int // requests that wait for it now
}

// maxRepeats bounds what is remembered of clients that went away, for each caller.
const maxRepeats = 1000

func newRepeats() *repeats { return &repeats{open: make(map[string]*repeat), bound: maxRepeats} }

// begin names the call that a request is of. ended says that the request is over, and whether its client was
// answered.
func (r *repeats) begin(session, id string, call wire.CallToolParams) (name string, ended func(answered bool)) {
	of := intents.Digest([]byte(session + "\n" + id + "\n" + call.Name + "\n" + string(call.RawArguments)))
	r.mu.Lock()
	defer r.mu.Unlock()
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
		if answered && r.open[of] == at {
			delete(r.open, of)
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
