package scale

import (
	"math/rand/v2"
	"slices"
	"time"
)

// cell is what is simulated: a journal, the router that decides and writes it, executors and a
// recorder.
type cell struct {
	rate          float64 // intents that come a second
	cores, atOnce int     // cores of the router for intents; what executors ask at once
	seed          uint64
}

// simulation is one run of a cell.
type simulation struct {
	events
	cell
	measured      Measured
	random        *rand.Rand
	trip, service time.Duration
	router        router
	stored        int // groups that the journal has taken

	journal, executor, recorder *station

	crowded bool // for every intent that is answered another one comes

	came                int             // intents
	committed, recorded meter           // commits
	latencies, lags     []time.Duration // of intents; of groups, from the journal to their documents
	inside              int             // intents, now
	since, area         time.Duration   // when inside changed last; intents × time
}

// router decides intents and commits what waits together: while a group is on its way, the
// next one gathers.
type router struct {
	intents, state *station
	waiting        []func()
	flying         bool
	applied        int // groups
}

// newSimulation of a cell.
func newSimulation(c cell, m Measured, a Assumptions) *simulation {
	s := &simulation{cell: c, measured: m, random: rand.New(rand.NewPCG(c.seed, 0))} //nolint:gosec // G404: a simulation
	s.trip = time.Duration(a.Value("round_trip_us") * float64(time.Microsecond) / 2)
	s.service = m.takes(1, Executor) + time.Duration(a.Value("service_ms")*float64(time.Millisecond))
	stations := func(n int) *station { return &station{events: &s.events, free: n} }
	s.journal, s.executor, s.recorder = stations(1), stations(c.atOnce), stations(1)
	s.router = router{intents: stations(c.cores), state: stations(1)}
	return s
}

// arrive lets intents come up to a time, at random: what many tenants do, each in a Poisson
// process, is a Poisson process.
func (s *simulation) arrive(until time.Duration) {
	s.after(time.Duration(s.random.ExpFloat64()/s.rate*float64(time.Second)), func() {
		if s.now < until {
			s.intent()
			s.arrive(until)
		}
	})
}

// leastInside and mostInside bound a crowd; the least fills groups.
const leastInside, mostInside = 2048, 100_000

// crowd has so many intents inside, always, that the router and the journal have enough to do, however
// long executors take.
func (s *simulation) crowd() {
	s.crowded = true
	n := float64(s.cores) * float64(s.service) / float64(s.measured.takes(1, Router))
	for range int(min(leastInside+n, mostInside)) {
		s.intent()
	}
}

// travel is one way between two machines.
func (s *simulation) travel(then func()) {
	s.after(time.Duration((0.5+s.random.Float64())*float64(s.trip)), then)
}

// enters counts intents that are inside.
func (s *simulation) enters(n int) {
	s.area += time.Duration(s.inside) * (s.now - s.since)
	s.inside, s.since = s.inside+n, s.now
}

// intent goes to the router, which decides and commits it, has it carried out and commits the outcome.
func (s *simulation) intent() {
	came, half := s.now, s.measured.takes(0.5, Router)
	s.came++
	s.enters(1)
	works := func(then func()) { s.router.intents.serve(half, func() { s.commit(func() { s.travel(then) }) }) }
	answered := func() {
		s.enters(-1)
		s.latencies = append(s.latencies, s.now-came)
		if s.crowded {
			s.intent()
		}
	}
	carriedOut := func() { s.travel(func() { works(answered) }) }
	s.travel(func() { works(func() { s.executor.serve(s.service, carriedOut) }) })
}

// commit waits for the router's next group.
func (s *simulation) commit(then func()) {
	s.router.waiting = append(s.router.waiting, then)
	s.send()
}

// send has the journal write what waits in the router as one message.
func (s *simulation) send() {
	r := &s.router
	n := min(len(r.waiting), GroupSizes[len(GroupSizes)-1])
	if r.flying || n == 0 {
		return
	}
	r.flying = true
	s.travel(func() {
		s.stored++
		group := r.waiting[:n:n]
		r.waiting = r.waiting[n:]
		// Its servers tell each other before they answer.
		s.journal.serve(s.measured.group(n)+2*s.trip, func() { s.follow(group) })
	})
}

// follow has the router and the recorder see a group; the router goes on with it.
func (s *simulation) follow(group []func()) {
	total, at, r := float64(len(group))/2, s.now, &s.router
	s.travel(func() {
		r.state.serve(s.measured.takes(total, Apply), func() {
			r.applied++
			s.committed.count(s.now, len(group))
			r.flying = false
			for _, then := range group {
				then()
			}
			s.send()
		})
	})
	s.travel(func() {
		s.recorder.serve(s.measured.takes(total, Recorder, Ledger), func() {
			s.recorded.count(s.now, len(group))
			s.lags = append(s.lags, s.now-at)
		})
	})
}

// meter counts what comes in groups.
type meter struct {
	all, first  int // the first group's
	since, last time.Duration
}

func (m *meter) count(now time.Duration, n int) {
	if m.all == 0 {
		m.first, m.since = n, now
	}
	m.all, m.last = m.all+n, now
}

// rate from the first group to the last; 0 of fewer than two.
func (m *meter) rate() float64 {
	if m.last == m.since {
		return 0
	}
	return float64(m.all-m.first) / (m.last - m.since).Seconds()
}

// use is which share of the time up to now each of what is there in a fixed number worked.
// What has begun may end later.
func (s *simulation) use() (names []string, shares []float64) {
	of := func(x *station, n int) float64 { return min(1, x.worked.Seconds()/s.now.Seconds()/float64(n)) }
	return []string{"recorder", "journal", "state", "router"},
		[]float64{of(s.recorder, 1), of(s.journal, 1), of(s.router.state, 1), of(s.router.intents, s.cores)}
}

// quantile of durations, in milliseconds; 0 of none.
func quantile(all []time.Duration, q float64) float64 {
	if len(all) == 0 {
		return 0
	}
	slices.Sort(all)
	return float64(all[int(q*float64(len(all)-1))].Microseconds()) / 1000
}
