package node

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/datadir"
	"aob.dev/writ/internal/health"
	"aob.dev/writ/upkeep"
)

// wrist is a wall clock that a test sets, on a machine whose time goes on.
type wrist struct {
	began time.Time
	off   atomic.Int64 // by how much it is wrong
}

func newWrist() *wrist { return &wrist{began: time.Now()} }

func (c *wrist) now() time.Time         { return time.Now().Add(time.Duration(c.off.Load())) }
func (c *wrist) elapsed() time.Duration { return time.Since(c.began) }
func (c *wrist) set(off time.Duration)  { c.off.Store(int64(off)) }

func (c *wrist) config(dir string) Config {
	cfg := config(dir)
	cfg.Now, cfg.Elapsed = c.now, c.elapsed
	return cfg
}

// readyz of a node.
func readyz(t *testing.T, n *Node) (code int, status string, up []health.Condition) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, fmt.Sprintf("http://%s/readyz", n.Addr()), nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	var doc struct {
		Status     string             `json:"status"`
		Conditions []health.Condition `json:"conditions"`
	}
	if err := errors.Join(json.NewDecoder(res.Body).Decode(&doc), res.Body.Close()); err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, doc.Status, doc.Conditions
}

// tenantPut is an intent of the operator.
func tenantPut(ctx context.Context, n *Node, id string) error {
	return n.operator(ctx, "admin.put", catalog.AdminPut{New: &catalog.Tenant{ID: id}})
}

// A clock that is set while a node runs keeps everything from being decided, from
// the first intent on, until an operator says that it is right.
func TestClockJumps(t *testing.T) {
	for name, by := range map[string]time.Duration{"forward": 2 * time.Hour, "back": -2 * time.Hour} {
		t.Run(name, func(t *testing.T) {
			c := newWrist()
			cfg := c.config(t.TempDir())
			n := open(t, cfg)
			run(t, n)
			if err := tenantPut(t.Context(), n, "before"); err != nil {
				t.Fatal(err)
			}
			c.set(by)
			next := n.journal.Next()
			err := tenantPut(t.Context(), n, "after")
			if err == nil || !strings.Contains(err.Error(), "the clock was set "+name) {
				t.Errorf("an intent after the jump: %v", err)
			}
			if n.journal.Next() != next {
				t.Error("something was committed")
			}
			if code, status, up := readyz(t, n); code != http.StatusServiceUnavailable || status != "not ready" || len(up) == 0 || !strings.Contains(up[0].Do, "writ admin confirm clock") {
				t.Errorf("%d %s %+v", code, status, up)
			}
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			if err := datadir.Confirm(ctx, cfg.Dir, conditionClock, c.now); err != nil {
				t.Fatal(err)
			}
			if err := tenantPut(t.Context(), n, "confirmed"); err != nil {
				t.Error(err)
			}
			if code, _, _ := readyz(t, n); code != http.StatusOK {
				t.Errorf("readyz %d after it was confirmed", code)
			}
			ascending(t, n)
		})
	}
}

// ascending: no record of a node is timed before an earlier one.
func ascending(t *testing.T, n *Node) {
	t.Helper()
	var latest time.Time
	for rec, err := range n.Records().Scan(t.Context(), 0) {
		if err != nil || rec.At.Before(latest) {
			t.Fatalf("record %d: %v before %v, %v", rec.Position, rec.At, latest, err)
		}
		latest = rec.At
	}
}

// The journal itself takes no intent whose decision may have read a clock that has
// jumped, however late the jump came.
func TestClockJumpsBeforeCommit(t *testing.T) {
	c := newWrist()
	n := open(t, c.config(t.TempDir()))
	if err := n.admit(); err != nil {
		t.Fatal(err)
	}
	c.set(61 * time.Second)
	if err := n.admit(); err == nil {
		t.Error("the journal takes intents")
	}
	c.set(0)
	if err := n.admit(); err == nil {
		t.Error("a clock that is put right again is as if nothing had been")
	}
}

// A start refuses nothing for the clock, and says that it is behind.
func TestStartWithClockBehind(t *testing.T) {
	c := newWrist()
	cfg := c.config(t.TempDir())
	n, err := Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	if err := run(t, n)(); err != nil {
		t.Fatal(err)
	}
	if err := n.Close(); err != nil {
		t.Fatal(err)
	}
	c.set(-2 * time.Hour)
	n = open(t, cfg)
	stop := run(t, n)
	if err := tenantPut(t.Context(), n, "later"); err != nil {
		t.Error(err)
	}
	n.look(t.Context())
	if code, status, up := readyz(t, n); code != http.StatusOK || status != "degraded" || len(up) != 1 || up[0].Name != conditionBehind {
		t.Errorf("%d %s %+v", code, status, up)
	}
	ascending(t, n)
	if err := stop(); err != nil {
		t.Error(err)
	}
	h, err := upkeep.Fsck(t.Context(), cfg.Dir, nil)
	if err != nil || !h.OK || h.ClockSteps == 0 {
		t.Errorf("%+v %v, %v", h, h.FirstBad, err)
	}
}

// What was confirmed under another clock, or where nobody runs, is not.
func TestConfirmRefused(t *testing.T) {
	c := newWrist()
	cfg := c.config(t.TempDir())
	if err := datadir.Confirm(t.Context(), cfg.Dir, conditionClock, c.now); !errors.Is(err, datadir.ErrNobodyRuns) {
		t.Errorf("nobody runs: %v", err)
	}
	n := open(t, cfg)
	if err := datadir.Confirm(t.Context(), cfg.Dir, "weather", c.now); err == nil {
		t.Error("anything can be confirmed")
	}
	c.set(time.Hour)
	_ = n.admit()
	done := make(chan error, 1)
	go func() { done <- datadir.Confirm(t.Context(), cfg.Dir, conditionClock, time.Now) }()
	for range 1000 {
		n.takeConfirmed(t.Context())
		select {
		case err := <-done:
			if err != nil || n.admit() == nil {
				t.Errorf("%v; an hour later it counts", err)
			}
			return
		case <-time.After(10 * time.Millisecond):
		}
	}
	t.Error("it was not taken up")
}
