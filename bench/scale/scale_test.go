package scale

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"
)

// question with the figures and assumptions that writ brings.
func question(t testing.TB, intentsPerSecond float64) Question {
	t.Helper()
	m, err := Builtin()
	if err != nil {
		t.Fatal(err)
	}
	return Question{IntentsPerSecond: intentsPerSecond, Seed: 1, Measured: m, Assumptions: DefaultAssumptions()}
}

func answered(t testing.TB, q Question) *Plan {
	t.Helper()
	p, err := Answer(q)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func (p *Plan) figure(t testing.TB, name string) float64 {
	t.Helper()
	for _, f := range p.Figures {
		if f.Name == name {
			return f.Value
		}
	}
	t.Fatalf("no figure %s", name)
	return 0
}

// TestQueueByHand: customers that come at random to one server that takes the same time for
// each (M/D/1) wait u/2(1-u) of that time in the mean, where u is its use.
func TestQueueByHand(t *testing.T) {
	const service = 10 * time.Millisecond
	for _, use := range []float64{0.2, 0.5, 0.8} {
		e := &events{}
		s := &station{events: e, free: 1}
		random := rand.New(rand.NewPCG(7, 7))
		var waited time.Duration
		n := 200_000
		var arrive func(left int)
		arrive = func(left int) {
			e.after(time.Duration(random.ExpFloat64()/use*float64(service)), func() {
				came := e.now
				s.serve(service, func() { waited += e.now - came - service })
				if left > 1 {
					arrive(left - 1)
				}
			})
		}
		arrive(n)
		e.run(math.MaxInt64)
		got, want := waited.Seconds()/float64(n)/service.Seconds(), use/(2*(1-use))
		if math.Abs(got-want) > 0.03*want {
			t.Errorf("use %g: waited %.4f services in the mean, by hand %.4f", use, got, want)
		}
		if n, want := s.worked, time.Duration(n)*service; n != want || s.free != 1 || len(s.waiting) != 0 {
			t.Errorf("worked %v, want %v; %d free, %d wait", n, want, s.free, len(s.waiting))
		}
	}
}

// TestIntentByHand: one intent in an empty cell takes what its parts take.
func TestIntentByHand(t *testing.T) {
	q := question(t, 1)
	s := newSimulation(cell{rate: 1, cores: 1, atOnce: 1, seed: 1}, q.Measured, q.Assumptions)
	s.intent()
	s.run(math.MaxInt64)
	m := q.Measured
	fixed := m.takes(1, Router, Executor, Apply) + 20*time.Millisecond + 2*(m.group(1)+500*time.Microsecond)
	// There and back between client and router, router and executor, and twice router and journal.
	ways := 8 * 250 * time.Microsecond
	if got := s.latencies[0] - fixed; got < ways/2 || got > ways*3/2 {
		t.Errorf("%v on the way, and %v for the rest", got, fixed)
	}
	if s.inside != 0 || s.recorded.all != 2 || s.stored != 2 {
		t.Errorf("%d inside, %d commits recorded in %d groups", s.inside, s.recorded.all, s.stored)
	}
}

// TestLittle: at any load there are as many intents inside in the mean as come in the time
// that one stays.
func TestLittle(t *testing.T) {
	q := question(t, 1)
	random := rand.New(rand.NewPCG(3, 3))
	for i := range 8 {
		c := cell{rate: 20 + 1400*random.Float64(), cores: 2 + random.IntN(6), atOnce: 100, seed: uint64(i)}
		s := newSimulation(c, q.Measured, q.Assumptions)
		s.arrive(time.Duration(5000 / c.rate * float64(time.Second)))
		s.run(math.MaxInt64)
		var stayed time.Duration
		for _, l := range s.latencies {
			stayed += l
		}
		inside := s.area.Seconds() / s.now.Seconds()
		rate, mean := float64(s.came)/s.now.Seconds(), stayed.Seconds()/float64(s.came)
		if len(s.latencies) != s.came || s.inside != 0 || s.recorded.all != 2*s.came || math.Abs(inside-rate*mean) > 0.001*inside {
			t.Errorf("%+v: %d came, %d went, %d commits recorded; %.4f inside, %.4f = %.1f/s × %.4f s", c, s.came, len(s.latencies), s.recorded.all, inside, rate*mean, rate, mean)
		}
		if math.Abs(rate-c.rate) > 0.1*c.rate {
			t.Errorf("%.1f intents per second came, asked were %.1f", rate, c.rate)
		}
	}
}

// TestOneGroupAtATime: the router has seen all groups in the end, and nothing waits for ever.
func TestOneGroupAtATime(t *testing.T) {
	q := question(t, 1)
	s := newSimulation(cell{rate: 3000, cores: 15, atOnce: 1000, seed: 1}, q.Measured, q.Assumptions)
	s.arrive(time.Second)
	s.run(math.MaxInt64)
	if r := s.router; r.applied != s.stored || r.flying || len(r.waiting) > 0 {
		t.Errorf("the router has seen %d of %d groups, %d commits wait", r.applied, s.stored, len(r.waiting))
	}
	if s.stored == 0 || s.stored >= 2*s.came {
		t.Errorf("%d groups of %d intents: nothing was written together", s.stored, s.came)
	}
}

// TestMoreNeedsMore: twice the load never needs fewer cells, machines or money, whatever is
// assumed; and what a cell takes does not hang on the load.
func TestMoreNeedsMore(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 5))
	tried := 0
	for range 5 {
		q := question(t, math.Exp(random.Float64()*9))
		for _, text := range []string{
			fmt.Sprint("tenants=", 1+random.IntN(20_000)), fmt.Sprint("zipf=", 0.1+random.Float64()),
			fmt.Sprint("utilisation=", 0.2+0.7*random.Float64()), fmt.Sprint("router_cores=", 2+random.IntN(7)),
		} {
			if err := q.Assumptions.Set(text); err != nil {
				t.Fatal(err)
			}
		}
		one, err := Answer(q)
		q.IntentsPerSecond *= 2
		two, twice := Answer(q)
		switch {
		case err != nil && twice == nil:
			t.Errorf("%v, but twice as much goes", err)
		case twice != nil:
			continue
		}
		tried++
		for _, name := range []string{"cells", "cores", "memory_gb", "disk_gb", "network_gb_a_day", "cost_a_month", "opensearch_data_nodes", "nats_servers"} {
			if a, b := one.figure(t, name), two.figure(t, name); a > b {
				t.Errorf("%g intents per second: %s %g, twice as many: %g", q.IntentsPerSecond/2, name, a, b)
			}
		}
		if a, b := one.figure(t, "cell_saturates_at"), two.figure(t, "cell_saturates_at"); a != b {
			t.Errorf("a cell saturates at %g and %g", a, b)
		}
	}
	if tried < 3 {
		t.Fatalf("only %d loads could be placed", tried)
	}
}

// TestSaturation: a cell cannot record more than its recorder does, and where another part is
// the slowest, that one is named.
func TestSaturation(t *testing.T) {
	for name, slow := range map[string]string{"recorder": Recorder, "state": Apply, "router": Router, "journal": Group(64)} {
		q := question(t, 1)
		q.Measured[Recorder], q.Measured[Ledger] = 1, 1
		of := 1000.0 // µs
		if slow == Router {
			of = 10_000
		}
		if name == "journal" {
			of = 400 // ms
		}
		q.Measured[slow] = of
		p := answered(t, q)
		if p.SaturatesFirst != name {
			t.Errorf("%s is slow, and %s saturates first", slow, p.SaturatesFirst)
		}
		if got := p.figure(t, "cell_saturates_at"); (name == "recorder" || name == "state") && math.Abs(got-1000) > 60 {
			t.Errorf("a cell whose %s takes 1 ms for an intent saturates at %g intents per second", slow, got)
		}
	}
}

// TestSameSeed gives the same bytes, and another one others.
func TestSameSeed(t *testing.T) {
	text := func(seed uint64) string {
		q := question(t, 700)
		q.Seed = seed
		raw, err := json.Marshal(answered(t, q))
		if err != nil {
			t.Fatal(err)
		}
		return string(raw)
	}
	if a, b := text(4), text(4); a != b {
		t.Errorf("one seed, two answers:\n%s\n%s", a, b)
	}
	if text(4) == text(5) {
		t.Error("the seed changes nothing")
	}
}

// TestLargestTenant: a tenant that no cell takes is an error that says what to do.
func TestLargestTenant(t *testing.T) {
	q := question(t, 5000)
	if err := q.Assumptions.Set("tenants=1"); err != nil {
		t.Fatal(err)
	}
	if p, err := Answer(q); err == nil || !strings.Contains(err.Error(), "5000 intents per second") || !strings.Contains(err.Error(), "assume more tenants") {
		t.Errorf("%+v %v", p, err)
	}
	for _, rate := range []float64{0, -1, math.NaN(), math.Inf(1), 2e6} {
		if _, err := Answer(question(t, rate)); err == nil {
			t.Errorf("%g intents per second have an answer", rate)
		}
	}
}

func TestAssumptions(t *testing.T) {
	a := DefaultAssumptions()
	for _, text := range []string{"", "zipf", "zipf=", "zipf=x", "zipf=0", "zipf=-1", "zipf=NaN", "zipf=Inf", "nothing=1", "utilisation=1.5", "tenants=0.5", "tenants=1e7", "router_cores=1"} {
		if err := a.Set(text); err == nil {
			t.Errorf("%q is taken", text)
		}
	}
	if err := a.Set("price_core=12.5"); err != nil || a.Value("price_core") != 12.5 {
		t.Errorf("%v, %g", err, a.Value("price_core"))
	}
	// Every one changes something.
	text := func(days float64, change int) string {
		q := question(t, 2000)
		q.Assumptions[slices.IndexFunc(q.Assumptions, func(x Assumption) bool { return x.Name == "days" })].Value = days
		if change >= 0 {
			q.Assumptions[change].Value *= 1.5
		}
		return fmt.Sprint(answered(t, q))
	}
	long, short := text(30, -1), text(1, -1)
	for i, x := range DefaultAssumptions() {
		if x.Name == "agent_seconds" || x.Name == "machine_cores" {
			continue // how the load is said; with one cell alone
		}
		plain, days := long, 30.0
		if x.Name == "search_documents" { // of many days, OpenSearch has more nodes for their disks than to write
			plain, days = short, 1
		}
		if text(days, i) == plain {
			t.Errorf("%s changes nothing", x.Name)
		}
	}
	q := question(t, 10)
	if err := q.Assumptions.Set("machine_cores=0.5"); err != nil {
		t.Fatal(err)
	}
	if got := answered(t, q).figure(t, "writ_up_cores"); got != 0 {
		t.Errorf("writ up fits half a core with %g", got)
	}
}

func TestReadMeasured(t *testing.T) {
	for name, text := range map[string]string{
		"empty": "", "no array": "{}", "nothing": "[]", "no figures": strings.ReplaceAll(string(builtin), `"ours"`, `"theirs"`),
		"one missing": strings.Replace(string(builtin), `"`+Recorder+`"`, `"record"`, 1), "negative": strings.Replace(string(builtin), `"ours": `, `"ours": -`, 1),
	} {
		if m, err := ReadMeasured(strings.NewReader(text)); err == nil {
			t.Errorf("%s: %v", name, m)
		}
	}
}

// TestPage: docs/scale.md has what the command prints, and the main figures that were measured.
func TestPage(t *testing.T) {
	raw, err := os.ReadFile("../../docs/scale.md")
	if err != nil {
		t.Fatal(err)
	}
	page := string(raw)
	var rows []string
	for line := range strings.Lines(page) {
		rows = append(rows, strings.Join(strings.Fields(line), " "))
	}
	var out bytes.Buffer
	var plans []*Plan
	for _, n := range []float64{10, 1000, 100_000} {
		plans = append(plans, answered(t, question(t, n)))
	}
	Print(&out, plans)
	for line := range strings.Lines(out.String()) {
		if row := strings.Join(strings.Fields(line), " "); !slices.Contains(rows, row) {
			t.Errorf("the page lacks the row\n%s", row)
		}
	}
	m, err := Builtin()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"router", "executor", Recorder} {
		if figure := fmt.Sprintf("%.3g µs", m[name]); !strings.Contains(page, figure) {
			t.Errorf("the page does not give %s of the row %s", figure, name)
		}
	}
}
