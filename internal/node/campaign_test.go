package node

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/datadir"
	"aob.dev/writ/upkeep"
)

// campaignTime is how long TestCampaign goes on; unset, it is a few rounds.
const campaignTime = "WRIT_CAMPAIGN"

// TestCampaign starts and stops a node on one directory again and again while its
// clock is set, its flags overwritten and its credentials emptied. After every
// round the directory is sound, no record is timed before an earlier one, and what
// was accepted once is a duplicate for good.
func TestCampaign(t *testing.T) {
	lasts, err := time.ParseDuration(os.Getenv(campaignTime))
	seed := uint64(1) // the same few rounds each time
	if err == nil {
		seed = rand.Uint64()
		t.Logf("seed %d", seed)
	}
	x := &campaign{T: t, random: rand.New(rand.NewPCG(seed, 0)), clock: newWrist(), dir: t.TempDir(), done: map[string]int{}}
	ends := time.Now().Add(lasts)
	for round := 0; round < 4 || time.Now().Before(ends); round++ {
		x.round(round)
		if t.Failed() {
			t.Fatalf("round %d", round)
		}
		x.done["starts"]++
	}
	t.Logf("done, with no violation: %v", x.done)
}

// campaign is a directory, a clock and what was accepted so far.
type campaign struct {
	*testing.T
	random *rand.Rand
	clock  *wrist
	dir    string
	done   map[string]int // what was tried, for who reads the log
	last   []byte         // the last intent that was accepted
	at     int64          // its position
}

func (x *campaign) must(err error) {
	x.Helper()
	if err != nil {
		x.Fatal(err)
	}
}

// round is one start: intents, a clock that is set under them, an end, and a
// nemesis that has the directory for itself.
func (x *campaign) round(round int) {
	x.clock = newWrist() // the machine was started anew
	x.clock.set(x.steps())
	cfg := x.clock.config(x.dir)
	n, err := Open(x.Context(), cfg)
	x.must(errors.Join(err))
	stop := run(x.T, n)
	x.resubmit(n)
	for i := range 2 + x.random.IntN(3) {
		x.intent(n, fmt.Sprintf("r%d-%d", round, i))
	}
	if x.random.IntN(2) == 0 {
		x.jump(n)
		x.intent(n, fmt.Sprintf("r%d-jumped", round))
	}
	ascending(x.T, n)
	if x.random.IntN(2) == 0 {
		n.snapshots.Pace = atEach
		x.must(n.snapshots.Check(x.Context()))
		x.done["snapshots"]++
	}
	x.must(errors.Join(stop(), n.Close()))
	h, err := upkeep.Fsck(x.Context(), x.dir, nil)
	if err != nil || !h.OK {
		x.Errorf("fsck: %+v %v, %v", h, h.FirstBad, err)
	}
	x.harm()
}

// steps is how wrong the clock of a start is, mostly not at all.
func (x *campaign) steps() time.Duration {
	return []time.Duration{0, 0, -time.Hour, -90 * time.Second, 30 * time.Second}[x.random.IntN(5)]
}

// jump sets the clock while the node runs: nothing is accepted until it is confirmed.
func (x *campaign) jump(n *Node) {
	x.Helper()
	by := time.Duration(61+x.random.IntN(7200)) * time.Second
	if x.random.IntN(2) == 0 {
		by = -by
	}
	x.clock.set(time.Duration(x.clock.off.Load()) + by)
	next := n.journal.Next()
	if err := tenantPut(x.Context(), n, "jumped"); err == nil || n.journal.Next() != next {
		x.Errorf("an intent after a jump of %v: %v, %d records more", by, err, n.journal.Next()-next)
	}
	x.done["clock jumps"]++
	x.must(datadir.Confirm(x.Context(), x.dir, conditionClock, x.clock.now))
}

// intent has one accepted, and remembers it.
func (x *campaign) intent(n *Node, id string) {
	x.Helper()
	args, err := json.Marshal(catalog.AdminPut{New: &catalog.Tenant{ID: id}})
	x.must(err)
	key := fmt.Sprintf("rnd_%016x", x.random.Uint64())
	signed, _, err := intents.Sign(n.keys.Now(intents.RoleOperator), intents.Body{
		Version: intents.Version, Intent: intents.Spec{Type: "admin.put", Args: args}, Actor: intents.Actor{UserID: "local", Tenant: "system"},
		Constraints: intents.Constraints{IssuedAt: intents.FormatTime(x.clock.now()), TTLSec: 300, Audience: n.Origin(), IdempotencyKey: key},
	})
	x.must(err)
	a, err := n.router.Submit(x.Context(), signed)
	x.must(err)
	if a.Code != intents.OK {
		x.Fatalf("%+v", a)
	}
	x.done["intents"]++
	x.last, x.at = signed, *a.Position
}

// resubmit submits the last intent: it is a duplicate, or too old by the clock of today.
func (x *campaign) resubmit(n *Node) {
	x.Helper()
	if x.last == nil {
		return
	}
	next := n.journal.Next()
	a, err := n.router.Submit(x.Context(), x.last)
	switch code := intents.CodeOf(err); {
	case err != nil && code != intents.ExpiredTTL && code != intents.NotYetValid:
		x.Errorf("again: %v", err)
	case err == nil && (!a.Replayed || *a.Position != x.at):
		x.Errorf("an intent ran twice: %+v", a)
	case n.journal.Next() != next:
		x.Error("something was committed")
	}
}

// found: damage is found in the background, also where the snapshot of the start covers it; the
// next start reads all records.
func (x *campaign) found() {
	x.Helper()
	n, err := Open(x.Context(), x.clock.config(x.dir))
	x.must(err)
	stop := run(x.T, n)
	snap, _ := n.snapshots.Last()
	n.checkAll(x.Context())
	_, err = os.Stat(datadir.Snapshot(x.dir))
	if !n.health.Up(conditionAltered) || err == nil {
		x.Errorf("damage: told %t, the snapshot %v", n.health.Up(conditionAltered), err)
	}
	if snap != nil && snap.Next > x.at {
		x.done["damage below a snapshot"]++
	}
	x.must(errors.Join(stop(), n.Close()))
}

// harm is what somebody does who may write to the directory.
func (x *campaign) harm() {
	x.Helper()
	if x.random.IntN(2) == 0 {
		execute(x.T, datadir.JournalFile(x.dir), fmt.Sprintf(setFlags, 0, x.at))
		if h, err := upkeep.Fsck(x.Context(), x.dir, nil); err != nil || h.OK {
			x.Errorf("overwritten flags are not found: %+v, %v", h, err)
		}
		x.done["flags overwritten"]++
		x.found()
		execute(x.T, datadir.JournalFile(x.dir), fmt.Sprintf(setFlags, 1, x.at)) // as a backup would
	}
	if x.random.IntN(2) == 0 {
		x.must(os.MkdirAll(filepath.Join(x.dir, "executors"), 0o700))
		x.must(os.WriteFile(filepath.Join(filepath.Join(x.dir, "executors"), "x-aaa.json"), nil, 0o600))
		x.done["credentials emptied"]++
	}
}
