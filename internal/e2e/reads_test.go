package e2e

import (
	"bufio"
	"context"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"aob.dev/writ/internal/datadir"
	"aob.dev/writ/router/httpapi"
)

// readers are how many tabs of the console, and clients that wait, look at once.
const readers = 20

// TestReadsLeaveNoRecord: what people look at is not recorded, however many look: tabs of the
// console, clients that wait for a plan, an MCP client that lists its tools. Each read is in the
// access log.
func TestReadsLeaveNoRecord(t *testing.T) {
	looksFor(t, 0)
}

// looksFor lets people look, once or for a time.
func looksFor(t *testing.T, lasts time.Duration) {
	t.Helper()
	shop := serveShop(t)
	s := start(t, setup{Skills: []string{shop.url}})
	s.holds("outlet_list")
	ana := s.addPerson("default", "ana", "user")
	held := s.hold(ana, openInBerlin)
	_, seen := s.streamEnd(ana, held.PlanID, "")
	session := s.mcpSession(ana)
	lists := func() {
		t.Helper()
		if status, text := s.rpc(ana, session, rpcOf(1, "tools/list", map[string]any{})); status != http.StatusOK || !strings.Contains(text, "outlet_list") {
			t.Errorf("tools: %d %s", status, text)
		}
	}
	lists() // its first one loads what the tools are
	tabs := make([]*browser, readers)
	for i := range tabs {
		tabs[i] = s.at(ana)
	}
	last, since := int64(-1), time.Now()
	s.await("rest", func() bool { // the plan that the list was loaded in ends
		if now := s.records().Next(); now != last {
			last, since = now, time.Now()
		}
		return time.Since(since) > 3*time.Second
	})
	before, lines := s.records().Next(), len(s.accessLog())

	ctx, leave := context.WithCancel(t.Context())
	var waiting, all sync.WaitGroup
	for range readers {
		connected := make(chan struct{})
		waiting.Go(func() { s.waits(ctx, ana, held.PlanID, seen, connected) })
		<-connected
	}
	pages := append([]string{"/console/plans/" + held.PlanID, "/console/health?usage=1"}, consolePages...)
	for until := time.Now().Add(lasts); ; {
		for _, b := range tabs {
			all.Go(func() {
				for _, page := range pages {
					if p := b.open(page); p.status != http.StatusOK {
						t.Errorf("%s: %d", page, p.status)
					}
				}
			})
		}
		for range readers {
			lists()
		}
		all.Wait()
		if !time.Now().Before(until) {
			break
		}
		select {
		case <-time.After(15 * time.Second): // as a tab that looks by itself, within the rate of its session
		case <-ctx.Done():
		}
	}
	leave()
	waiting.Wait()
	if now := s.records().Next(); now != before {
		t.Errorf("looking has left %d records", now-before)
	}
	if inCell() {
		return // each router has its own
	}
	routes := map[string]int{}
	for _, l := range s.accessLog()[lines:] {
		if l.Tenant != "default" || l.User != "ana" || !l.Own || l.Status != http.StatusOK {
			t.Errorf("%+v", l)
		}
		routes[l.Route]++
	}
	for route, least := range map[string]int{"/reads/plans/:id": 2 * readers, "/reads/plans": readers, "/v1/approvals": readers, "/v1/intents": readers, "/reads/usage": readers} {
		if routes[route] < least {
			t.Errorf("%d lines of %s, at least %d: %v", routes[route], route, least, routes)
		}
	}
}

// waits follows a plan that waits, until ctx ends.
func (s *system) waits(ctx context.Context, who person, plan, after string, connected chan<- struct{}) {
	defer close(connected)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url+"/agent/plans/"+plan+"/events", nil)
	if err != nil {
		s.t.Error(err)
		return
	}
	for name, value := range map[string]string{"X-Api-Key": who.key, "X-User-Id": who.user, "Last-Event-ID": after} {
		req.Header.Set(name, value)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		s.t.Error(err)
		return
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		s.t.Errorf("stream: HTTP %d", resp.StatusCode)
		return
	}
	connected <- struct{}{}
	for lines := bufio.NewScanner(resp.Body); lines.Scan(); {
	}
}

// accessLog reads the lines of a node's access log.
func (s *system) accessLog() (out []httpapi.AccessLine) {
	s.t.Helper()
	files, err := filepath.Glob(filepath.Join(datadir.AccessLog(s.dir), "*.jsonl"))
	if err != nil {
		s.t.Fatal(err)
	}
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			s.t.Fatal(err)
		}
		for line := range strings.Lines(string(raw)) {
			var l httpapi.AccessLine
			if err := json.Unmarshal([]byte(line), &l); err != nil {
				s.t.Fatalf("%s: %v", line, err)
			}
			out = append(out, l)
		}
	}
	return out
}

// TestOverseerLeavesOneRecord: who looks at another's plan leaves one audit.read, whatever the way,
// and the owner none.
func TestOverseerLeavesOneRecord(t *testing.T) {
	shop := serveShop(t)
	s := start(t, setup{Skills: []string{shop.url}})
	ana, audrey := s.addPerson("default", "ana", "user"), s.addPerson("default", "audrey", "user", "auditor")
	turn := s.ask(ana, openInBerlin)
	path := "/agent/plans/" + turn.PlanID
	signed := func() (n int) {
		for _, i := range s.intents("") {
			if i.Type == "audit.read" {
				n++
			}
		}
		return n
	}
	for range 3 {
		s.planOf(ana, turn.PlanID)
		if n := signed(); n != 0 {
			t.Fatalf("%d for an own plan", n)
		}
	}
	console := s.at(audrey)
	for range 3 {
		s.planOf(audrey, turn.PlanID)
		if status, p := s.call(audrey, http.MethodGet, path+"/trace", nil, nil); status != http.StatusOK {
			t.Errorf("HTTP %d %+v", status, p)
		}
		console.open("/console/plans/"+turn.PlanID).shows(t, openInBerlin)
	}
	if n := signed(); n != 1 {
		t.Errorf("%d intents of one who looks at one plan", n)
	}
	bob := s.addPerson("default", "bob", "user")
	if status, _ := s.call(bob, http.MethodGet, path, nil, nil); status != http.StatusNotFound {
		t.Errorf("bob: HTTP %d", status)
	}
}
