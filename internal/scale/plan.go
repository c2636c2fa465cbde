// Package scale works out what an installation of writ takes at a number of orders a
// second: it simulates one cell by measured figures and by assumptions that the reader can
// change, and counts cells, machines, disks and costs from that. The same seed gives the
// same result: there is no clock in it.
package scale

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
)

// Question is what somebody wants to know.
type Question struct {
	OrdersPerSecond float64
	Agents          float64 // if not 0: instead of it, so many agents that order now and then
	Seed            uint64
	Measured        Measured
	Assumptions     Assumptions
}

// Plan is the answer. Every cell is built like the fullest one. Sizes are in GB, times in
// milliseconds.
type Plan struct {
	Seed            uint64             `json:"seed"`
	OrdersPerSecond float64            `json:"orders_per_second"`
	Cells           int                `json:"cells"`
	Fullest         float64            `json:"fullest_cell_orders_per_second"`
	LargestTenant   float64            `json:"largest_tenant_orders_per_second"`
	Saturation      float64            `json:"saturation_orders_per_second"` // of a cell
	SaturatesFirst  string             `json:"saturates_first"`
	Use             map[string]float64 `json:"use"` // in the fullest cell, of 1
	P50             float64            `json:"p50_ms"`
	P99             float64            `json:"p99_ms"`
	Lag             float64            `json:"recorder_lag_p99_ms"`
	Routers         int                `json:"routers_per_cell"`
	Executors       int                `json:"executors_per_cell"`
	AskedAtOnce     int                `json:"asked_at_once_per_cell"`
	NATS            int                `json:"nats_servers"`
	Search          int                `json:"opensearch_data_nodes"`
	Cores           int                `json:"cores"`
	Memory          float64            `json:"memory_gb"`
	FollowerMemory  float64            `json:"memory_of_keys_and_state_gb"` // of each router and recorder
	JournalDay      float64            `json:"journal_gb_a_day"`            // one copy of three
	LedgerDay       float64            `json:"ledger_gb_a_day"`             // one copy of two
	DocumentsDay    float64            `json:"documents_gb_a_day"`          // one copy
	Disk            float64            `json:"disk_gb"`                     // for as long as it is kept
	NetworkDay      float64            `json:"network_gb_a_day"`
	Cost            float64            `json:"cost_a_month"`
	OneMachine      float64            `json:"one_machine_cores"`        // for writ up; 0: it does not fit
	OneMachineCost  float64            `json:"one_machine_cost_a_month"` // with a disk
	Measured        Measured           `json:"measured"`
	Assumptions     map[string]float64 `json:"assumptions"`
}

// Parts that a cell has in a fixed number, or at least.
const (
	natsServers    = 3
	recorders      = 2 // one waits
	atLeast        = 2 // of what there can be several of
	atLeastSearch  = 3
	followerGB     = 0.5 // memory of a process that follows no orders yet
	heapFactor     = 2   // heap of a Go process over what it holds
	keptInMemory   = 54 * time.Hour
	secondsOfDay   = 86_400
	daysOfMonth    = 30
	bytesOfGB      = 1e9
	simulated      = 50_000 // orders
	leastSimulated = 10 * time.Second
	mostSimulated  = 600 * time.Second
	saturating     = 2 * time.Second
	mostRouters    = 64
	unbounded      = 1 << 30
)

// Answer works it out.
func Answer(q Question) (*Plan, error) {
	m, a := q.Measured, q.Assumptions
	p := &Plan{Seed: q.Seed, OrdersPerSecond: q.OrdersPerSecond, Measured: m, Assumptions: map[string]float64{}}
	for _, x := range a {
		p.Assumptions[x.Name] = x.Value
	}
	if q.Agents > 0 {
		p.OrdersPerSecond = q.Agents / a.of(agentTime)
	}
	if !(p.OrdersPerSecond > 0) || math.IsInf(p.OrdersPerSecond, 0) || a.of(routerCores) < 2 || a.of(tenantsIn) > 1e6 {
		return nil, errors.New("there must be some orders a second, two cores for a router and a million tenants at most")
	}
	p.saturate(q)
	if err := p.place(a); err != nil {
		return nil, err
	}
	p.runFullest(q)
	p.count(m, a)
	return p, nil
}

// saturate finds what one cell can do: it gets more than it can take, with more and more
// routers until these are not what it lacks.
func (p *Plan) saturate(q Question) {
	c := cell{cores: int(q.Assumptions.of(routerCores)) - 1, services: unbounded, seed: q.Seed}
	for c.routers = atLeast; c.routers <= mostRouters; c.routers++ {
		c.rate = float64(c.routers*c.cores) / q.Measured.micros(Router).Seconds()
		r := simulate(c, q.Measured, q.Assumptions, saturating, false)
		p.Saturation = min(float64(r.answered), float64(r.recorded)/2) / saturating.Seconds()
		if p.SaturatesFirst = r.busiest(); p.SaturatesFirst != "routers" {
			return
		}
	}
}

// place gives every tenant a cell, the largest first, each to the emptiest, with as many
// cells as that needs.
func (p *Plan) place(a Assumptions) error {
	room := p.Saturation * a.of(utilisation)
	tenants := make([]float64, int(max(1, a.of(tenantsIn))))
	var sum float64
	for i := range tenants {
		tenants[i] = math.Pow(float64(i+1), -a.of(zipf))
		sum += tenants[i]
	}
	p.LargestTenant = p.OrdersPerSecond / sum
	if p.LargestTenant > room {
		return fmt.Errorf("the largest tenant has %.0f orders/s, and a cell takes %.0f (%.0f %% of its saturation): a tenant lives in one cell, so assume more tenants or a smaller zipf",
			p.LargestTenant, room, 100*a.of(utilisation))
	}
	for p.Cells = int(math.Ceil(p.OrdersPerSecond / room)); ; p.Cells++ {
		cells := make([]float64, p.Cells)
		for _, t := range tenants {
			i := 0
			for j := range cells {
				if cells[j] < cells[i] {
					i = j
				}
			}
			cells[i] += t * p.LargestTenant
		}
		if p.Fullest = slices.Max(cells); p.Fullest <= room {
			return nil
		}
	}
}

// runFullest simulates the fullest cell with as many routers as it needs.
func (p *Plan) runFullest(q Question) {
	a := q.Assumptions
	c := cell{rate: p.Fullest, cores: int(a.of(routerCores)) - 1, seed: q.Seed}
	need := p.Fullest / a.of(utilisation)
	c.routers = max(atLeast, int(math.Ceil(need*q.Measured.micros(Router).Seconds()/float64(c.cores))))
	c.services = int(math.Ceil(need*(q.Measured.micros(Executor).Seconds()+a.of(serviceTime)/1000))) + atLeast
	d := time.Duration(simulated / p.Fullest * float64(time.Second))
	r := simulate(c, q.Measured, a, min(max(d, leastSimulated), mostSimulated), true)
	p.Routers, p.AskedAtOnce, p.Use = c.routers, c.services, r.usage
	p.P50, p.P99, p.Lag = quantile(r.latencies, 0.5), quantile(r.latencies, 0.99), quantile(r.lags, 0.99)
}

// count is what all of it comes to.
func (p *Plan) count(m Measured, a Assumptions) {
	cells, use := float64(p.Cells), a.of(utilisation)
	cores := func(rate float64, of ...string) (sum float64) {
		for _, name := range of {
			sum += rate * m.micros(name).Seconds() / use
		}
		return sum
	}
	day := func(bytes string) float64 { return p.OrdersPerSecond * m[bytes] * secondsOfDay / bytesOfGB }
	p.Executors = max(atLeast, int(math.Ceil(cores(p.Fullest, Executor)/a.of(executorCores))))
	p.NATS = natsServers * p.Cells
	p.JournalDay, p.LedgerDay, p.DocumentsDay = day(JournalBytes), day(LedgerBytes), day(DocumentBytes)
	documents := p.DocumentsDay * a.of(searchCopies) * a.of(kept)
	p.Search = int(math.Ceil(max(atLeastSearch, documents/a.of(searchDisk)/use,
		p.OrdersPerSecond*m[Documents]*a.of(searchCopies)/a.of(searchDocuments)/use)))
	p.Disk = documents + a.of(kept)*(natsServers*p.JournalDay+recorders*p.LedgerDay)
	perCell := float64(p.Routers)*a.of(routerCores) + float64(p.Executors)*a.of(executorCores) + recorders*a.of(recorderCores) + natsServers*a.of(natsCores)
	p.Cores = int(math.Ceil(cells*perCell + float64(p.Search)*a.of(searchCores)))
	inMemory := func(rate float64) float64 {
		return followerGB + heapFactor*rate*keptInMemory.Seconds()*(m[StateBytes]+m[KeyBytes])/bytesOfGB
	}
	followers := float64(p.Routers + recorders)
	p.FollowerMemory = inMemory(p.Fullest)
	p.Memory = float64(p.Cores)*a.of(coreMemory) + cells*followers*p.FollowerMemory
	// To the first server, from it to the others, and to all that follow; documents to each copy.
	p.NetworkDay = p.JournalDay*(natsServers+followers) + p.DocumentsDay*a.of(searchCopies)
	p.Cost = float64(p.Cores)*a.of(priceCore) + p.Memory*a.of(priceMemory) + p.Disk*a.of(priceDisk) + daysOfMonth*p.NetworkDay*a.of(priceNetwork)
	one := math.Ceil(cores(p.OrdersPerSecond, Router, Executor, Fold, Recorder, Ledger))
	if p.Cells == 1 && one <= a.of(machineCores) {
		p.OneMachine = one
		p.OneMachineCost = one*a.of(priceCore) + (one*a.of(coreMemory)+inMemory(p.OrdersPerSecond))*a.of(priceMemory) +
			a.of(kept)*(p.JournalDay+p.LedgerDay+p.DocumentsDay)*a.of(priceDisk)
	}
}

// Table is the plan in lines for people.
func (p *Plan) Table() string {
	one := fmt.Sprintf("%.0f cores, %.0f a month", p.OneMachine, p.OneMachineCost)
	if p.OneMachine == 0 {
		one = "too small"
	}
	var use []string
	for _, name := range []string{"recorder", "journal", "state", "routers"} {
		use = append(use, fmt.Sprintf("%s %.0f %%", name, 100*p.Use[name]))
	}
	return lines(
		"orders/s", fmt.Sprintf("%.0f", p.OrdersPerSecond),
		"writ up on one machine", one,
		"cells", fmt.Sprint(p.Cells),
		"fullest cell", fmt.Sprintf("%.0f orders/s; its largest tenant %.1f", p.Fullest, p.LargestTenant),
		"a cell saturates at", fmt.Sprintf("%.0f orders/s: %s", p.Saturation, p.SaturatesFirst),
		"in use", strings.Join(use, ", "),
		"latency", fmt.Sprintf("p50 %.1f ms, p99 %.1f ms", p.P50, p.P99),
		"recorder's lag", fmt.Sprintf("p99 %.1f ms", p.Lag),
		"in each cell", fmt.Sprintf("%d routers, %d executors (%d calls at once), %d recorders, %d NATS servers", p.Routers, p.Executors, p.AskedAtOnce, recorders, natsServers),
		"OpenSearch", fmt.Sprintf("%d data nodes", p.Search),
		"cores", fmt.Sprint(p.Cores),
		"memory", fmt.Sprintf("%.0f GB; keys and state %.1f GB in each router and recorder", p.Memory, p.FollowerMemory),
		"disk a day", fmt.Sprintf("journal %.1f GB × %d, ledger %.1f GB × %d, documents %.1f GB × %.0f", p.JournalDay, natsServers, p.LedgerDay, recorders, p.DocumentsDay, p.Assumptions[searchCopies]),
		"disk", fmt.Sprintf("%.0f GB for %.0f days", p.Disk, p.Assumptions[kept]),
		"network", fmt.Sprintf("%.0f GB a day", p.NetworkDay),
		"cost", fmt.Sprintf("%.0f a month", p.Cost),
	)
}

// lines of names and values.
func lines(pairs ...string) string {
	var b strings.Builder
	for pair := range slices.Chunk(pairs, 2) {
		fmt.Fprintf(&b, "%-24s%s\n", pair[0], pair[1])
	}
	return b.String()
}
