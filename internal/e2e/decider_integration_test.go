//go:build integration

package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"aob.dev/writ/cell"
	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/clock"
	"aob.dev/writ/internal/keydir"
	"aob.dev/writ/internal/testing/natstest"
	"aob.dev/writ/storage"
	"aob.dev/writ/storage/jetstream"
)

// TestIntegrationDecider: the router that decides in a cell is killed, stopped for longer than its lease,
// and cut off, while users send parcels and an operator sends intents. The other one takes over: no accepted
// intent is lost or doubled, and one that wakes or is back decides nothing and ends.
func TestIntegrationDecider(t *testing.T) {
	f := startFaulty(t)
	o := f.operates()
	lasts, err := time.ParseDuration(os.Getenv(campaignTime))
	ends := time.Now().Add(lasts)
	rounds := []struct {
		name string
		do   func(*machine, natstest.Way)
	}{
		{"killed", func(x *machine, _ natstest.Way) { _ = x.cmd.Process.Kill() }},
		{"stopped", func(x *machine, _ natstest.Way) { _ = x.cmd.Process.Signal(syscall.SIGSTOP) }},
		{"cut off", func(_ *machine, w natstest.Way) { w.Cut() }},
	}
	longest := map[string]time.Duration{}
	for n := 0; n < len(rounds) || err == nil && time.Now().Before(ends); n++ {
		what := rounds[n%len(rounds)]
		x, way := f.decider()
		f.pause(2 * time.Second)
		o.longest = 0
		what.do(x, way)
		for range 4 { // the first of them, at least, meets nobody
			o.submit()
		}
		f.more(1)
		_ = x.cmd.Process.Signal(syscall.SIGCONT)
		way.Mend()
		select {
		case <-x.ended:
		case <-time.After(patience):
			t.Fatalf("a router that was %s goes on:\n%s", what.name, x.stderr.Bytes())
		}
		longest[what.name] = max(longest[what.name], o.longest)
		f.supervise()
		t.Logf("%s: %s, the longest wait was %.1f s", time.Now().Format(time.TimeOnly), what.name, o.longest.Seconds())
	}
	f.check()
	o.check()
	t.Logf("the longest waits: %v", longest)
}

// decider is the process of the router that decides, and its way to the servers.
func (f *faulty) decider() (*machine, natstest.Way) {
	f.Helper()
	r := f.roles[slices.IndexFunc(f.roles, func(r faultyRole) bool { return r.name == "router" })]
	for range 100 {
		s, err := cell.StatusOf(f.Context(), cell.Bus{URLs: f.servers.URLs(), Seeds: f.seeds, Instance: "a"}, []string{filepath.Join(f.dir, "router", "keys")})
		if i := slices.Index(twice, s.Router); err == nil && i >= 0 {
			return r.processes[i], f.ways[i]
		}
		_ = clock.Sleep(f.Context(), 100*time.Millisecond)
	}
	f.Fatal("no router decides")
	return nil, nil
}

// operator sends intents at a gateway, one after the other.
type operator struct {
	*faulty
	key       keydir.Operator
	sent      int
	positions []int64 // of those that were answered
	longest   time.Duration
}

func (f *faulty) operates() *operator {
	f.Helper()
	dir := filepath.Join(f.dir, "operator", "keys")
	held, err := keydir.LoadSome(dir)
	if err != nil {
		f.Fatal(err)
	}
	p, err := cell.OpenPublished([]string{dir})
	if err != nil {
		f.Fatal(err)
	}
	return &operator{faulty: f, key: keydir.Operator{Key: held.ByRole(intents.RoleOperator)[0], Subject: "local", Tenant: keydir.LocalTenant, Origin: p.Origin()}}
}

// submit sends an intent, again and again until there is an answer, as clients do.
func (o *operator) submit() {
	o.Helper()
	raw, err := o.key.Sign("admin.put", catalog.AdminPut{Tenant: "default", Data: &catalog.Data{Key: "approval", Value: []byte(`{"once":false}`)}}, time.Now())
	if err != nil {
		o.Fatal(err)
	}
	began := time.Now()
	ctx, cancel := context.WithTimeout(o.Context(), patience)
	defer cancel()
	for ctx.Err() == nil {
		o.sent++
		if a := o.post(ctx, o.urls[o.sent%2], raw); a.Code == intents.OK && a.Position != nil {
			o.positions = append(o.positions, *a.Position)
			o.longest = max(o.longest, time.Since(began))
			return
		}
		_ = clock.Sleep(ctx, 100*time.Millisecond)
	}
	o.Fatal("an operator's intent has no answer")
}

func (o *operator) post(ctx context.Context, url string, raw []byte) (a intents.Answer) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url+"/v1/intents", bytes.NewReader(raw))
	if err != nil {
		o.Fatal(err)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return a
	}
	defer res.Body.Close()
	_ = json.NewDecoder(res.Body).Decode(&a)
	return a
}

// check: what was answered is in the record, each at a place of its own.
func (o *operator) check() {
	o.Helper()
	js, done := o.journal()
	defer done()
	j, err := jetstream.Open(o.Context(), js, jetstream.Options{})
	if err != nil {
		o.Fatal(err)
	}
	defer j.Close()
	slices.Sort(o.positions)
	if n := len(slices.Compact(slices.Clone(o.positions))); n != len(o.positions) {
		o.Errorf("%d answers are of %d records", len(o.positions), n)
	}
	for _, position := range o.positions {
		if rec, err := j.Get(o.Context(), position); err != nil || rec.Kind != storage.KindIntent {
			o.Errorf("record %d: %+v, %v", position, rec.Kind, err)
		}
	}
}
