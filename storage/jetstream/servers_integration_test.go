//go:build integration

package jetstream_test

import (
	"os"
	"testing"
	"time"

	"aob.dev/writ/storage/jetstream"
)

// campaignTime is how long TestIntegrationServers runs; unset, it does each thing once.
const campaignTime = "WRIT_CAMPAIGN"

// stallTime is how long the other servers have to continue without one. NATS does not promise that
// they do: one that has just come back may wait for a snapshot that only the one which is away
// has.
const stallTime = 30 * time.Second

// TestIntegrationServers kills, holds and cuts off the server that leads the stream, and then
// the others, while a router writes. What was acknowledged is stored afterwards, once.
func TestIntegrationServers(t *testing.T) {
	c := newCell(t)
	js := c.Connect(t, c.account)
	running := c.start()
	c.more(100)
	what := []struct {
		name       string
		begin, end func(int)
	}{{"killed", c.Kill, c.Launch}, {"held", c.Hold, c.Continue}, {"cut off", c.Cut, c.Mend}}
	lasts, err := time.ParseDuration(os.Getenv(campaignTime))
	ends := time.Now().Add(lasts)
	done := map[string]int{}
	for round := 0; round < len(what) || err == nil && time.Now().Before(ends); round++ {
		fault := what[round%len(what)]
		server := c.Leader(js, jetstream.Stream)
		if c.random.IntN(4) == 0 {
			server = c.random.IntN(3)
		}
		t.Logf("%s: server %d is %s", time.Now().Format(time.TimeOnly), server, fault.name)
		fault.begin(server)
		if !c.within(stallTime, 1+c.random.IntN(300)) {
			done["stalled"]++
		}
		t.Logf("%s: server %d is back", time.Now().Format(time.TimeOnly), server)
		fault.end(server)
		c.more(1 + c.random.IntN(300))
		done[fault.name]++
	}
	running.kill()
	c.check()
	t.Logf("servers: %v", done)
}
