//go:build integration && linux

package e2e

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"aob.dev/writ/internal/datadir"
)

// campaignTime is how long TestIntegrationPowerCut goes on; unset, it is a few
// rounds.
const campaignTime = "WRIT_CAMPAIGN"

// TestIntegrationPowerCut cuts the power of a disk that a whole data directory is
// on, in first starts, in later ones, and while operators and users work. What was
// acknowledged before is there afterwards, all else is there or not, and writ
// starts on it.
func TestIntegrationPowerCut(t *testing.T) {
	if !alone(t) {
		return
	}
	lasts, err := time.ParseDuration(os.Getenv(campaignTime))
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	c := &cuts{random: rand.New(rand.NewPCG(seed, 0)), disk: newDisk(t), startTime: time.Second, acknowledged: make(chan struct{})}
	c.machine = &machine{system: &system{t: t}}
	t.Cleanup(func() {
		c.off()
		if t.Failed() {
			t.Logf("the last writ said:\n%s", c.stderr.Bytes())
		}
	})
	c.catalog(3)
	ends := time.Now().Add(lasts)
	for life := 0; life < 2 || err == nil && time.Now().Before(ends); life++ {
		c.live(life)
	}
	t.Logf("%d cuts, %d of them in a start; %d commands were acknowledged", c.cuts, c.inStart, c.acked)
	if c.acked == 0 {
		t.Error("nothing was ever acknowledged")
	}
}

// cuts is a machine on a disk of its own, and what it promised.
type cuts struct {
	*machine
	*promises
	disk         *disk
	random       *rand.Rand
	rows         string // of executors
	startTime    time.Duration
	acknowledged chan struct{} // something was acknowledged
	dark         atomic.Bool   // the power is cut

	cuts, inStart, acked int
}

// live begins a new data directory and cuts its power again and again.
func (c *cuts) live(n int) {
	c.t.Helper()
	c.dir = filepath.Join(c.disk.dir, "data-"+strconv.Itoa(n))
	c.args = []string{"up", "--data", c.dir, "--listen", "127.0.0.1:0", "--catalog", c.rows, "--log-level", "warn"}
	c.promises = newPromises()
	for range 3 {
		c.cutStart()
	}
	for range 4 {
		c.up()
		c.check()
		c.cutWork()
		if c.random.IntN(2) == 0 {
			c.cutStart()
		}
	}
	c.up()
	c.check()
	c.end(syscall.SIGTERM)
	c.sound()
	if err := os.RemoveAll(c.dir); err != nil { // the disk is in memory
		c.t.Error(err)
	}
}

// cutStart cuts the power in the middle of a start, or soon after it.
func (c *cuts) cutStart() {
	c.t.Helper()
	announced := c.run(os.Environ())
	select {
	case <-announced:
		c.begun() // it has reported that this is durable
	case <-c.ended:
		c.t.Fatalf("writ up ended: %v", c.cmd.ProcessState)
	case <-time.After(time.Duration(c.random.Int64N(int64(c.startTime) * 3 / 2))):
	}
	c.inStart++
	c.cutAll(func() {})
}

// cutWork cuts the power while writ is used: at any moment, or at once when
// something was acknowledged.
func (c *cuts) cutWork() {
	c.t.Helper()
	moment, promised := time.Duration(c.random.Int64N(int64(3*time.Second))), c.random.IntN(2) == 0
	stop := c.work()
	time.Sleep(moment)
	if promised {
		select {
		case <-c.acknowledged:
		case <-time.After(patience):
			c.t.Error("nothing is acknowledged")
		}
	}
	c.cutAll(stop)
}

// cutAll cuts the power, ends who felt it, and looks at what is left.
func (c *cuts) cutAll(stop func()) {
	c.t.Helper()
	c.cuts++
	c.dark.Store(true)
	c.disk.cut()
	stop()
	c.off()
	c.disk.restore()
	c.dark.Store(false)
	c.sound()
	if c.t.Failed() {
		c.t.Fatalf("after cut %d", c.cuts)
	}
}

// off ends the process, which may have ended by itself when it could not write.
func (c *cuts) off() {
	c.t.Helper()
	if c.cmd == nil {
		return
	}
	_ = c.cmd.Process.Kill()
	select {
	case <-c.ended:
	case <-time.After(patience):
		c.t.Error("writ up does not end")
	}
	c.cmd = nil
}

// up starts writ, which has to come up.
func (c *cuts) up() {
	c.t.Helper()
	started := time.Now()
	select {
	case c.url = <-c.run(os.Environ()):
	case <-c.ended:
		c.t.Fatalf("writ up ended: %v", c.cmd.ProcessState)
	case <-time.After(patience):
		c.t.Fatal("writ up says nothing")
	}
	c.startTime = time.Since(started)
	c.begun()
}

// begun: the log has begun and its API key is known. Both stay what they are.
func (c *cuts) begun() {
	c.t.Helper()
	key, err := datadir.LocalKey(c.dir)
	if err != nil || key == "" {
		c.t.Fatalf("the API key that was printed: %q, %v", key, err)
	}
	if c.key = key; c.promises.first == "" {
		c.promises.first = key
	}
	if key != c.promises.first {
		c.t.Error("the first API key was made again")
	}
}
