package monitor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"sync"
	"time"
)

// ProcessStatus is the status of a process that follows the journal: counts, without personal data.
// Processes of a cell serve it at ProcessStatusPath.
type ProcessStatus struct {
	HoldsLate  int      `json:"holds_late"`
	Records    int64    `json:"records"`
	Leaves     int64    `json:"leaves"` // of the ledger; 0: it does not record
	Conditions []string `json:"conditions"`
}

// ProcessStatusPath is where a process of a cell serves its status.
const ProcessStatusPath = "/process-status"

// ServeHTTP implements http.Handler.
func (s ProcessStatus) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(s) // the client is gone
}

// Process converts the status for figures. lag remembers the earlier calls.
func (s ProcessStatus) Process(lag *Lag, now time.Time) Process {
	return Process{HoldsLate: s.HoldsLate, LedgerBehind: lag.update(s.Leaves, s.Records, now), Conditions: append([]string{}, s.Conditions...)}
}

// Lag measures how long the ledger has stood still though there are more records. The zero value is
// ready.
type Lag struct {
	mu    sync.Mutex // guards what follows
	at    int64
	since time.Time // when it was first seen there, being behind; zero: it is not
}

func (l *Lag) update(at, end int64, now time.Time) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case at >= end:
		l.since = time.Time{}
	case l.since.IsZero() || at != l.at:
		l.since = now
	}
	l.at = at
	if l.since.IsZero() {
		return 0
	}
	return now.Sub(l.since)
}

// Cell are the processes of a cell, whose status a monitor reads.
type Cell struct {
	Processes map[string][]*http.Client // by role, one for each process
	Own       func() []string           // conditions of this process
	Now       func() time.Time
	Log       *slog.Logger

	lag Lag
}

// askTime is how long all of them have to answer.
const askTime = 4 * time.Second

// Process is the worst of the processes' statuses. If no process of a role answers, that is a
// condition.
func (c *Cell) Process() Process {
	ctx, cancel := context.WithTimeout(context.Background(), askTime)
	defer cancel()
	all := ProcessStatus{Conditions: c.Own()}
	for role, clients := range c.Processes {
		answered := 0
		for _, client := range clients {
			s, err := ask(ctx, client)
			if err != nil {
				c.Log.WarnContext(ctx, "a process does not say how it stands", slog.String("role", role), slog.String("error", err.Error()))
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
	return all.Process(&c.lag, c.Now())
}

// maxStanding bounds an answer, in bytes.
const maxStanding = 64 << 10

func ask(ctx context.Context, client *http.Client) (s ProcessStatus, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://process"+ProcessStatusPath, nil)
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
