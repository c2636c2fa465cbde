package graphs

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"aob.dev/writ/bus"
	"aob.dev/writ/bus/natsserver"
	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/storage"
)

// campaignTime is how long TestFaults goes on; unset, it is a few runs of each fault.
// faultSeed begins with one seed, to repeat a run.
const (
	campaignTime = "WRIT_CAMPAIGN"
	faultSeed    = "WRIT_SEED"
)

const (
	lostMessages = "messages lost, late and doubled"
	lyingServers = "skill servers that lie"
	silentServer = "skill servers that do not answer"
	clockJumps   = "clock jumps"
)

var faults = []string{lostMessages, lyingServers, silentServer, clockJumps}

// quiet is how long a run may go without a record before its processes are started anew.
const quiet = 400 * time.Millisecond

// chaos is a fault, as often as chance has it, and what was promised meanwhile.
type chaos struct {
	fault string

	mu     sync.Mutex // guards the rest
	random *rand.Rand
	done   bool // the fault is
	tries  int
	acked  map[string]int64 // positions that answers had, by intent_id and code
	broken []string
}

// comes reports whether the fault comes now, in so many of a hundred cases.
func (c *chaos) comes(fault string, percent int) bool {
	if c == nil || c.fault != fault {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.done || c.random.IntN(100) >= percent {
		return false
	}
	c.tries++
	return true
}

func (c *chaos) number(n int) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.random.IntN(n)
}

// lossy is a connection on which messages are lost, late and doubled.
type lossy struct {
	bus.Conn
	*chaos
}

func (l lossy) Request(ctx context.Context, subject string, data []byte) ([]byte, error) {
	switch {
	case l.comes(lostMessages, 3): // on the way there
		return nil, context.DeadlineExceeded
	case l.comes(lostMessages, 3): // late
		select {
		case <-time.After(time.Duration(l.number(30)) * time.Millisecond):
		case <-ctx.Done():
		}
	}
	reply, err := l.Conn.Request(ctx, subject, data)
	if err != nil || subject != bus.Intents {
		return reply, err
	}
	first := l.acks(reply)
	if l.comes(lostMessages, 6) { // doubled
		if again, err := l.Conn.Request(ctx, subject, data); err == nil {
			if second := l.acks(again); first.Position != nil && second.Position != nil && first.Outcome != nil && second.Outcome != nil && (*first.Position != *second.Position || first.Code != second.Code) {
				l.violated("a duplicate was answered %s at %d, the first %s at %d", second.Code, *second.Position, first.Code, *first.Position)
			}
		}
	}
	if l.comes(lostMessages, 3) { // on the way back
		return nil, context.DeadlineExceeded
	}
	return reply, nil
}

// acks notes what an answer promises.
func (c *chaos) acks(reply []byte) (a intents.Answer) {
	if err := json.Unmarshal(reply, &a); err != nil {
		c.violated("an answer that is none: %v", err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if a.Position != nil && a.Decision != nil && a.Decision.Verdict == intents.Allow {
		c.acked[a.IntentID] = *a.Position
	}
	return a
}

func (c *chaos) violated(format string, args ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.broken = append(c.broken, fmt.Sprintf(format, args...))
}

// lie is what a skill server answers that has acted.
func (c *chaos) lie() intents.Report {
	lies := []intents.Report{
		{},
		{Status: intents.Done, Code: intents.OK},
		{Status: "splendid", Code: "GREAT"},
		{Status: intents.Done, Code: intents.OK, Result: json.RawMessage(`{"output":"yes"}`)},
		{Status: intents.Done, Code: intents.OK, Result: json.RawMessage(`{"output":{"success":"maybe","n":"many"}}`)},
		{Status: intents.Done, Code: intents.OK, Result: json.RawMessage(`[1`)},
		{Status: intents.Failed, Code: intents.OK},
		{Status: intents.Done, Code: intents.OK, Result: json.RawMessage(`{"output":{"success":true,"n":"` + strings.Repeat("7", 40_000) + `"}}`)},
	}
	return lies[c.number(len(lies))]
}

// TestFaults: whatever fault comes to a run, it reaches an end; an intent that acts once is carried
// out at most once; what was acknowledged is in the journal where the answer said; a duplicate gets
// the first one's answer; and the state that follows from the journal is the one that was there.
func TestFaults(t *testing.T) {
	t.Parallel()
	lasts, err := time.ParseDuration(os.Getenv(campaignTime))
	seed, runs := uint64(1), 3*len(faults)
	if err == nil {
		seed, runs = rand.Uint64()>>16, 0
	}
	if raw := os.Getenv(faultSeed); raw != "" {
		if _, err := fmt.Sscan(raw, &seed); err != nil {
			t.Fatal(err)
		}
		runs = 1
	}
	server, err := natsserver.Start(t.Context(), natsserver.Options{Dir: t.TempDir(), Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Close)
	done, tries, broken := map[string]int{}, map[string]int{}, map[string]int{}
	for ends := time.Now().Add(lasts); runs > 0 || time.Now().Before(ends); runs, seed = runs-1, seed+1 {
		c := &chaos{fault: faults[seed%uint64(len(faults))], random: rand.New(rand.NewPCG(seed, 3)), acked: map[string]int64{}}
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			x := &run{T: t, graph: graphOf(seed % 49), mode: modes[0], server: server, chaos: c}
			x.disturbed()
		})
		done[c.fault]++
		tries[c.fault] += c.tries
		broken[c.fault] += len(c.broken)
		for _, b := range c.broken {
			t.Errorf("%s=%d: %s: %s", faultSeed, seed, c.fault, b)
		}
	}
	for _, f := range slices.Sorted(maps.Keys(done)) {
		t.Logf("%s: %d runs, %d faults, %d violations", f, done[f], tries[f], broken[f])
	}
	if len(done) == len(faults) && slices.Contains(slices.Collect(maps.Values(tries)), 0) {
		t.Errorf("faults %v: some never came", tries)
	}
}

// disturbed carries a run out under a fault, and starts its processes anew wherever it stands still.
func (x *run) disturbed() {
	c := x.chaos
	x.begin()
	for n := 0; ; n++ {
		if n == 20 { // a fault that goes on for ever may keep a run from its end for ever
			c.mu.Lock()
			c.done = true
			c.mu.Unlock()
		}
		if n == 60 {
			c.violated("the run does not end: %+v", x.plan.View())
			break
		}
		x.deaths++
		x.startAgents()
		ctx, cancel := context.WithCancel(x.Context())
		over := make(chan struct{})
		go func() {
			defer close(over)
			x.dispatch(ctx)
		}()
		for before, still := x.w.Dir.Next(), true; still; {
			select {
			case <-over:
				still = false
			case <-time.After(quiet):
				next := x.w.Dir.Next()
				still, before = next != before, next
			}
		}
		cancel()
		<-over
		x.kill(0)
		if s := x.plan.View().Status; s == catalog.PlanComplete || s == catalog.PlanFailed {
			break
		}
	}
	for attempt, byID := range x.calls {
		for id, times := range byID {
			var node int
			if _, err := fmt.Sscanf(attempt, "n%d.", &node); err == nil && times > 1 && x.graph.nodes[node].skill == "s.once" {
				c.violated("the intent %s of %s was carried out %d times", id, attempt, times)
			}
		}
	}
	x.endRouter()
	next, before, err := x.w.Dir.Digest()
	x.w.Must(err)
	x.w = x.w.ReopenOn(x.open)
	if n, after, err := x.w.Dir.Digest(); err != nil || n != next || after != before {
		c.violated("another state follows from the journal, of %d records, not %d: %v", n, next, err)
	}
	for id, at := range c.acked {
		rec, err := x.w.Journal.Get(x.Context(), at)
		x.w.Must(err)
		d, err := intents.ReadDecision(rec.Parts[storage.PartDecision])
		if err != nil || d.IntentID != id {
			c.violated("%s was acknowledged at %d, where %s is (%v)", id, at, d.IntentID, err)
		}
	}
	x.w.Must(x.journal.Close())
	x.w.Must(os.RemoveAll(x.dir))
}
