// Package scale works out what an installation of writ takes at a number of intents a
// second: it simulates one cell by measured figures and by assumptions that the reader can
// change, and counts cells, machines, disks and costs from that. There is no clock in it:
// the same seed gives the same result.
package scale

import (
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"time"
)

// Question is what somebody wants to know.
type Question struct {
	IntentsPerSecond float64
	Seed             uint64
	Measured         Measured
	Assumptions      Assumptions
}

// Plan is the answer. Every cell is built like the fullest one.
type Plan struct {
	SaturatesFirst string   `json:"saturates_first"` // in a cell
	Figures        []Figure `json:"figures"`         // in the order of reading
}

// Figure of a plan.
type Figure struct {
	Name  string  `json:"name"`
	Value float64 `json:"value"`
}

// What a cell has in a fixed number or at least, and sizes that follow from the code.
const (
	natsServers   = 3
	routers       = 2 // one decides, and the other one stands by
	recorders     = 2 // one waits
	atLeast       = 2 // of what there can be several of
	atLeastSearch = 3
	heapFactor    = 2         // memory of a Go process over what it holds
	keptSeconds   = 54 * 3600 // keys and state stay for 48 hours, up to 6 more
	day           = 86_400
	// A newer snapshot is made in so many seconds, or once so many bytes of the last one have
	// an intent behind it.
	snapshotSeconds, snapshotIntent = 300, 2 << 10
	gigabyte                        = 1e9
	saturating                      = time.Second
	simulated                       = 20_000 // intents
)

// Answer works it out.
func Answer(q Question) (*Plan, error) {
	if !(q.IntentsPerSecond >= 0.001 && q.IntentsPerSecond <= 1e6) {
		return nil, errors.New("there must be from 0.001 to a million")
	}
	m, a, p := q.Measured, q.Assumptions, &Plan{}
	saturation := p.saturate(q)
	room := saturation * a.Value("utilisation")
	largest, cells, err := place(q.IntentsPerSecond, room, a)
	if err != nil {
		return nil, err
	}
	fullest := slices.Max(cells)
	p.add("intents_per_second", q.IntentsPerSecond)
	p.add("cells", float64(len(cells)))
	p.add("cell_saturates_at", saturation)
	p.add("fullest_cell", fullest)
	p.add("largest_tenant", largest)
	p.runFullest(q, fullest)
	p.count(m, a, q.IntentsPerSecond, fullest, float64(len(cells)))
	return p, nil
}

func (p *Plan) add(name string, value float64) { p.Figures = append(p.Figures, Figure{name, value}) }

// saturate finds what one cell can do: as many intents are inside as keep every part busy.
func (p *Plan) saturate(q Question) (rate float64) {
	s := newSimulation(cell{cores: routerCores(q.Assumptions), atOnce: math.MaxInt32, seed: q.Seed}, q.Measured, q.Assumptions)
	s.crowd()
	s.run(saturating)
	names, shares := s.use()
	if p.SaturatesFirst = names[slices.Index(shares, slices.Max(shares))]; s.recorded.rate() < 0.9*s.committed.rate() {
		p.SaturatesFirst = "recorder"
	}
	return min(s.committed.rate(), s.recorded.rate()) / 2
}

// routerCores are those of a router that decide: one follows the journal.
func routerCores(a Assumptions) int { return int(a.Value("router_cores")) - 1 }

// place gives every tenant a cell, the largest first, each to the emptiest, with as many
// cells as that needs so that none gets more than it has room for.
func place(rate, room float64, a Assumptions) (largest float64, cells []float64, err error) {
	tenants := make([]float64, int(a.Value("tenants")))
	var sum float64
	for i := range tenants {
		tenants[i] = math.Pow(float64(i+1), -a.Value("zipf"))
		sum += tenants[i]
	}
	if largest = rate / sum; largest > room {
		return 0, nil, fmt.Errorf("the largest tenant has %.0f intents per second and a cell is used up to %.0f: a tenant lives in one cell, so assume more tenants or a smaller zipf", largest, room)
	}
	for n := int(math.Ceil(rate / room)); cells == nil || slices.Max(cells) > room; n++ {
		cells = make([]float64, n)
		for _, t := range tenants {
			cells[slices.Index(cells, slices.Min(cells))] += t * largest
		}
	}
	return largest, cells, nil
}

// runFullest simulates the fullest cell.
func (p *Plan) runFullest(q Question, rate float64) {
	a := q.Assumptions
	c := cell{rate: rate, cores: routerCores(a), seed: q.Seed}
	need := rate / a.Value("utilisation")
	c.atOnce = atLeast + int(math.Ceil(need*(q.Measured.takes(1, Executor).Seconds()+a.Value("service_ms")/1000)))
	s := newSimulation(c, q.Measured, a)
	s.arrive(time.Duration(simulated / rate * float64(time.Second)))
	s.run(math.MaxInt64)
	names, shares := s.use()
	for i, name := range names {
		p.add("use_of_"+name, shares[i])
	}
	p.add("latency_p50_ms", quantile(s.latencies, 0.5))
	p.add("latency_p99_ms", quantile(s.latencies, 0.99))
	p.add("recorder_lag_p99_ms", quantile(s.lags, 0.99))
	p.add("routers_per_cell", routers)
	p.add("calls_at_once_per_cell", float64(c.atOnce))
}

// count is what all of it comes to.
func (p *Plan) count(m Measured, a Assumptions, rate, fullest, cells float64) {
	use, days := a.Value("utilisation"), a.Value("days")
	daily := func(name string) float64 { return rate * m[name] * day / gigabyte }
	journal, ledger, documents := daily(JournalBytes), daily(LedgerBytes), daily(DocumentBytes)
	copies := a.Value("search_copies")
	executors := max(atLeast, math.Ceil(fullest*m.takes(1, Executor).Seconds()/use/a.Value("executor_cores")))
	search := math.Ceil(max(atLeastSearch, documents*copies*days/a.Value("search_disk_gb")/use, rate*m[Documents]*copies/a.Value("search_documents")/use))
	cores := cells*(routers*a.Value("router_cores")+executors*a.Value("executor_cores")+recorders*a.Value("recorder_cores")+natsServers*a.Value("nats_cores")) + search*a.Value("search_cores")
	follower := func(rate float64) float64 {
		return heapFactor * rate * keptSeconds * (m[StateBytes] + m[KeyBytes]) / gigabyte
	}
	memory := cores*a.Value("memory_gb_per_core") + cells*(routers+recorders)*follower(fullest)
	disk := days * (natsServers*journal + recorders*ledger + copies*documents)
	// To the first server, from it to the others and to all that follow; documents to each copy.
	network := journal*(natsServers+routers+recorders) + documents*copies
	p.add("executors_per_cell", executors)
	p.add("recorders_per_cell", recorders)
	p.add("nats_servers", natsServers*cells)
	p.add("opensearch_data_nodes", search)
	p.add("cores", cores)
	p.add("memory_gb", memory)
	p.add("memory_gb_of_keys_in_each_router", follower(fullest))
	p.add("journal_gb_a_day", journal)
	p.add("ledger_gb_a_day", ledger)
	p.add("documents_gb_a_day", documents)
	p.add("disk_gb", disk)
	p.add("network_gb_a_day", network)
	kept := fullest * keptSeconds
	behind := max(fullest*snapshotSeconds, kept*m[SnapshotBytes]/snapshotIntent)
	p.add("minutes_to_start", (m.takes(kept, Snapshot) + m.takes(behind, Apply)).Minutes())
	p.add("hours_to_read_the_journal", fullest*days*day*m.takes(1, Apply).Hours())
	p.add("cost_a_month", cores*a.Value("price_core")+memory*a.Value("price_memory_gb")+disk*a.Value("price_disk_gb")+30*network*a.Value("price_network_gb"))
	one := math.Ceil(rate * m.takes(1, Router, Executor, Apply, Recorder, Ledger).Seconds() / use)
	if cells > 1 || one > a.Value("machine_cores") {
		one = 0
	}
	p.add("writ_up_cores", one)
	if one > 0 {
		one = one*a.Value("price_core") + (one*a.Value("memory_gb_per_core")+follower(rate))*a.Value("price_memory_gb") + days*(journal+ledger+documents)*a.Value("price_disk_gb")
	}
	p.add("writ_up_cost_a_month", one)
}

// Print plans side by side, a line for each figure, cells separated by tabs.
func Print(w io.Writer, plans []*Plan) {
	for i, f := range plans[0].Figures {
		fmt.Fprint(w, f.Name)
		for _, p := range plans {
			fmt.Fprintf(w, "\t%s", rounded(p.Figures[i].Value))
		}
		fmt.Fprintln(w)
	}
	fmt.Fprint(w, "saturates_first")
	for _, p := range plans {
		fmt.Fprint(w, "\t", p.SaturatesFirst)
	}
	fmt.Fprintln(w)
}

// rounded to three digits that count; whole numbers have all of theirs.
func rounded(v float64) string {
	if v >= 100 || v == math.Trunc(v) {
		return strconv.FormatFloat(v, 'f', 0, 64)
	}
	return strconv.FormatFloat(v, 'g', 3, 64)
}
