package scale

import (
	"cmp"
	"maps"
	"math/rand/v2"
	"slices"
	"time"
)

// cell is what is simulated: one journal, some routers, one recorder, executors.
type cell struct {
	rate                     float64 // orders that come a second
	routers, cores, services int     // routers; cores of each for orders; what executors ask at once
	seed                     uint64
}

// run is what came of it.
type run struct {
	answered, recorded       int             // orders; commits
	latencies, lags          []time.Duration // of orders; of groups, from the journal to documents
	took                     time.Duration   // until the last was answered
	inside                   int             // orders, now
	since, area              time.Duration   // when inside changed last; orders × time
	usage                    map[string]float64
	routers                  []*router
	journal, asked, recorder *station
}

// router decides orders and commits what waits together: while a group is on its way, the
// next one gathers.
type router struct {
	orders, state *station
	waiting       []func()
	flying        bool
}

// simulation is one run of a cell.
type simulation struct {
	events
	run
	cell
	measured Measured
	trip     time.Duration // half a round trip
	service  time.Duration
	next     int // router
}

// simulate lets orders come for so long, at random (a Poisson process: what the tenants of
// a cell do together), and, if drained, goes on until all are answered.
func simulate(c cell, m Measured, a Assumptions, d time.Duration, drained bool) *run {
	s := &simulation{cell: c, measured: m, trip: time.Duration(a.of(roundTrip) * float64(time.Microsecond) / 2)}
	s.service = m.micros(Executor) + time.Duration(a.of(serviceTime)*float64(time.Millisecond))
	stations := func(n int) *station { return &station{events: &s.events, servers: n} }
	s.journal, s.asked, s.recorder = stations(1), stations(c.services), stations(1)
	for range c.routers {
		s.run.routers = append(s.run.routers, &router{orders: stations(c.cores), state: stations(1)})
	}
	random := rand.New(rand.NewPCG(c.seed, 0)) //nolint:gosec // G404: a simulation
	open := true
	var arrive func()
	arrive = func() {
		if !open {
			return
		}
		s.order()
		s.after(time.Duration(random.ExpFloat64()/c.rate*float64(time.Second)), arrive)
	}
	s.after(time.Duration(random.ExpFloat64()/c.rate*float64(time.Second)), arrive)
	s.events.run(d)
	s.use(d)
	if open = false; drained {
		for len(s.queue) > 0 {
			s.events.run(s.queue[0].at)
		}
	}
	s.took = s.now
	return &s.run
}

// enters counts orders that are inside.
func (s *simulation) enters(n int) {
	s.area += time.Duration(s.inside) * (s.now - s.since)
	s.inside, s.since = s.inside+n, s.now
}

// order goes to the next router, which decides and commits it, has it carried out and
// commits the outcome.
func (s *simulation) order() {
	r := s.run.routers[s.next%len(s.run.routers)]
	s.next++
	came, half := s.now, s.measured.micros(Router)/2
	s.enters(1)
	done := func() {
		s.enters(-1)
		s.answered++
		s.latencies = append(s.latencies, s.now-came)
	}
	outcome := func() { r.orders.serve(half, func() { s.commit(r, func() { s.after(s.trip, done) }) }) }
	carryOut := func() { s.asked.serve(s.service, func() { s.after(s.trip, outcome) }) }
	s.after(s.trip, func() { r.orders.serve(half, func() { s.commit(r, func() { s.after(s.trip, carryOut) }) }) })
}

// commit waits for the router's next group.
func (s *simulation) commit(r *router, then func()) {
	r.waiting = append(r.waiting, then)
	s.send(r)
}

// send has the journal write what waits in a router as one message, unless one is on its
// way. All routers and the recorder follow it; its own goes on when it has seen it.
func (s *simulation) send(r *router) {
	n := min(len(r.waiting), GroupSizes[len(GroupSizes)-1])
	if r.flying || n == 0 {
		return
	}
	group := r.waiting[:n:n]
	r.waiting, r.flying = r.waiting[n:], true
	written := func() {
		at := s.now
		r.flying = false
		for _, each := range s.run.routers {
			each.state.serve(time.Duration(n)*s.measured.micros(Fold)/2, func() {
				for _, then := range group {
					if each == r {
						then()
					}
				}
			})
		}
		s.recorder.serve(time.Duration(n)*(s.measured.micros(Recorder)+s.measured.micros(Ledger))/2, func() {
			s.recorded += n
			s.lags = append(s.lags, s.now-at)
		})
		s.send(r)
	}
	// There and back, and once more between the journal's servers.
	s.after(s.trip, func() { s.journal.serve(s.measured.group(n), func() { s.after(3*s.trip, written) }) })
}

// use is which share of the time what is there once, or in a fixed number, was at work.
func (s *simulation) use(d time.Duration) {
	first := s.run.routers[0]
	s.usage = map[string]float64{}
	for name, x := range map[string]*station{"journal": s.journal, "recorder": s.recorder, "routers": first.orders, "state": first.state} {
		// What began before the end may end later: a station is never busier than all the time.
		s.usage[name] = min(1, x.worked.Seconds()/d.Seconds()/float64(x.servers))
	}
}

// busiest is what had the least time left.
func (r *run) busiest() string {
	return slices.MaxFunc(slices.Sorted(maps.Keys(r.usage)), func(a, b string) int { return cmp.Compare(r.usage[a], r.usage[b]) })
}

// quantile of durations, in milliseconds; 0 of none.
func quantile(all []time.Duration, q float64) float64 {
	if len(all) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(all))
	return float64(sorted[int(q*float64(len(sorted)-1))].Microseconds()) / 1000
}
