package node

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"time"

	"aob.dev/writ/internal/egress"
	"aob.dev/writ/internal/monitor"
)

// standingPath is where a process of a cell says how it stands.
const standingPath = "/standing"

// standing is how a process that follows the journal stands: counts, and nothing of anybody.
type standing struct {
	HoldsLate  int      `json:"holds_late"`
	Records    int64    `json:"records"`
	Leaves     int64    `json:"leaves"` // of the ledger; 0: it does not record
	Conditions []string `json:"conditions"`
}

func (n *Node) standing() (s standing) {
	_, s.HoldsLate, _ = n.directory.Waiting(n.cfg.Now())
	s.Records = n.journal.Next()
	if n.recording.Load() {
		s.Leaves = n.ledger.Size()
	}
	for _, c := range n.health.List() {
		s.Conditions = append(s.Conditions, c.Name)
	}
	return s
}

// process is that as the monitor has it.
func (s standing) process(l *lag, now time.Time) monitor.Process {
	return monitor.Process{HoldsLate: s.HoldsLate, LedgerBehind: l.of(s.Leaves, s.Records, now), Conditions: append([]string{}, s.Conditions...)}
}

// serveStanding answers for it.
func (n *Node) serveStanding(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(n.standing()) // the client is gone
}

// cellmates are the processes that a monitor asks.
type cellmates struct {
	node *Node
	of   map[string][]*http.Client // by role, one for each process
}

func (n *Node) openCellmates() (*cellmates, error) {
	out := &cellmates{node: n, of: map[string][]*http.Client{}}
	for role, urls := range map[string][]string{"router": n.cfg.Cluster.Routers, "recorder": n.cfg.Cluster.Recorders} {
		for _, u := range urls {
			s, err := newSeveral([]string{u})
			if err != nil {
				return nil, fmt.Errorf("%ss: %w", role, err)
			}
			out.of[role] = append(out.of[role], egress.Client(s))
		}
	}
	return out, nil
}

// process is the worst of what the processes say. Where none of a role answers, that is a
// condition.
func (c *cellmates) process() monitor.Process {
	ctx, cancel := context.WithTimeout(context.Background(), 2*lookTime)
	defer cancel()
	var all standing
	for _, x := range c.node.health.List() {
		all.Conditions = append(all.Conditions, x.Name)
	}
	for role, clients := range c.of {
		answered := 0
		for _, client := range clients {
			s, err := ask(ctx, client)
			if err != nil {
				c.node.cfg.Log.WarnContext(ctx, "a process does not say how it stands", slog.String("role", role), slog.String("error", err.Error()))
				continue
			}
			answered++
			all.HoldsLate, all.Records, all.Leaves = max(all.HoldsLate, s.HoldsLate), max(all.Records, s.Records), max(all.Leaves, s.Leaves)
			all.Conditions = append(all.Conditions, s.Conditions...)
		}
		if answered == 0 {
			all.Conditions = append(all.Conditions, "no "+role+" answers")
		}
	}
	slices.Sort(all.Conditions)
	all.Conditions = slices.Compact(all.Conditions)
	return all.process(&c.node.lag, c.node.cfg.Now())
}

// maxStanding bounds an answer, in bytes.
const maxStanding = 64 << 10

func ask(ctx context.Context, client *http.Client) (s standing, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://process"+standingPath, nil)
	if err != nil {
		return s, err
	}
	res, err := client.Do(req)
	if err != nil {
		return s, err
	}
	defer func() { err = errors.Join(err, res.Body.Close()) }()
	if res.StatusCode != http.StatusOK {
		return s, fmt.Errorf("HTTP %d", res.StatusCode)
	}
	return s, json.NewDecoder(io.LimitReader(res.Body, maxStanding)).Decode(&s)
}
