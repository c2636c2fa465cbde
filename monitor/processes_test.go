package monitor

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"testing"
	"time"
)

// TestNobodyAnswers: if no process of a role answers, that is a condition; the ledger is behind as
// long as no process has more leaves.
func TestNobodyAnswers(t *testing.T) {
	now := time.Now()
	gone := &http.Client{Transport: &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) { return nil, net.ErrClosed }}}
	c := &Cell{
		Processes: map[string][]*http.Client{"router": {gone, gone}}, Own: func() []string { return nil },
		Now: func() time.Time { return now }, Log: slog.New(slog.DiscardHandler),
	}
	if p := c.Process(); !slices.Equal(p.Conditions, []string{"no router answers"}) {
		t.Errorf("%+v", p)
	}
	var l Lag
	ProcessStatus{Records: 9, Leaves: 9}.Process(&l, now)
	ProcessStatus{Records: 9}.Process(&l, now)
	if p := (ProcessStatus{Records: 9, HoldsLate: 2, Conditions: []string{"disk"}}).Process(&l, now.Add(time.Minute)); p.LedgerBehind != time.Minute || p.HoldsLate != 2 || len(p.Conditions) != 1 {
		t.Errorf("%+v", p)
	}
}
