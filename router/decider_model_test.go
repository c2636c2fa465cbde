package router

import (
	"slices"
	"testing"
)

// This file is a model of how one router decides in a cell: lease, term, tickets, and the reports
// that executors keep. Its test explores every order of steps and faults within bounds.
//
// Time is in ticks of two seconds. Faults are a router that is killed or paused, a lease that cannot
// be renewed, an executor that crashes or falls silent, and tickets that are held up, lost or
// doubled.

// Bounds of the model, in ticks, like those of the program in seconds.
const (
	mStop    = 1 // who has not renewed for so long decides nothing
	mFree    = 2 // a lease without a new revision is free
	mBegin   = 1 // until an intent must be begun, after its ticket
	mLeeway  = 2 // between clocks
	mLeave   = 2 // so long, and the leeway, a successor leaves intents alone
	mRun     = 3 // the longest run
	mFaults  = 3 // no fault comes later
	mStates  = 2_000_000
	mTold    = 10 // by then, what was held up goes on
	mHorizon = 30
)

// The rules of the model. A mutant leaves one out.
type rule string

const (
	ruleNone      rule = ""
	ruleBeginBy   rule = "an executor refuses what it has not begun in time"
	ruleAge       rule = "a ticket is issued only under a lease renewed lately"
	ruleTerm      rule = "who takes the lease stores a term before anything else"
	ruleFollow    rule = "it follows to the term before it listens"
	ruleLeave     rule = "it leaves open intents alone before it says what is not known"
	ruleKeep      rule = "an executor keeps a report until it is acknowledged"
	ruleExit      rule = "who has lost the lease or reads another's term ends"
	ruleFree      rule = "a lease is free only once its owner decides nothing any more"
	ruleSequence  rule = "a record is stored only behind the last one that its router has read"
	ruleRunning   rule = "an intent that runs is waited for"
	ruleNewTicket rule = "an intent that was refused unstarted gets a new ticket"
	ruleSame      rule = "an executor begins an attempt once"
	ruleOnce      rule = "an intent that has its effect once is not dispatched again"
	ruleAsk       rule = "the router asks for a report that did not come"
)

// Kinds of records.
const (
	isTerm = iota + 1
	isIntent
	isOther // another intent, which ends with its commit
	isTakeover
	isDone
	isUnknown // INDETERMINATE
)

type mRecord struct{ kind, by int8 }

// Modes of a router.
const (
	standby = iota
	taking
	leading
)

// Work of a router on the intent.
const (
	idle     = iota
	toTicket // committed
	waits    // for the report
	refused  // unstarted
	asks     // what became of it
	reported
)

type mRouter struct {
	mode, work                    int8
	paused, noRenewal             bool
	renewed, seen, seenAt, termAt int8
	ticketed                      int8 // when the ticket was issued
	read                          int8 // records
	judged                        int8 // what it is about to store; 0: nothing
}

type mTicket struct {
	attempt, beginBy, to int8 // attempt 0: none
	held                 bool
}

// mWorld is a state of everything.
type mWorld struct {
	now     int8
	rev     int8 // of the lease
	holder  int8
	routers [2]mRouter
	log     [9]mRecord
	n       int8
	tickets [2]mTicket
	reply   [2]int8 // to a router: 0 none, 1 done, 2 unstarted
	skew    int8    // of the executor's clock

	runs      [3]int8 // by attempt: 0 never begun, 1 begun, 2 reported
	began     [3]int8 // when
	starts    [3]int8
	silent    bool // the executor that has the intent; others answer
	forgot    bool // it has crashed
	faults    int8
	last      int8 // the router that began to listen last, +1
	violation string
}

type model struct {
	without rule
	once    bool
}

func (m model) has(r rule) bool { return m.without != r }

// find the records of a kind before a place.
func (w *mWorld) find(kind, before int8) bool {
	return slices.ContainsFunc(w.log[:before], func(r mRecord) bool { return r.kind == kind })
}

func (w *mWorld) ended(before int8) bool { return w.find(isDone, before) || w.find(isUnknown, before) }

func (w *mWorld) attempt() int8 {
	if w.find(isTakeover, w.n) {
		return 2
	}
	return 1
}

func (w *mWorld) broken(invariant string) {
	if w.violation == "" {
		w.violation = invariant
	}
}

// Names of the invariants.
const (
	invOnce   = "an attempt, and an intent of effect once, runs at most once"
	invEnds   = "every accepted intent ends"
	invStale  = "who was succeeded decides nothing"
	invWhole  = "an answer knows everything accepted before"
	invSilent = "INDETERMINATE only where the executor is silent"
	invLate   = "nothing begins after its verdict"

	tooMuch = "the log of the model is too short" // not explored
)

// append stores a record of a router, if it may. ok is false if the router has lost the sequence.
func (m model) append(w *mWorld, r int8, kind int8) (ok bool) {
	x := &w.routers[r]
	if m.has(ruleSequence) && x.read != w.n {
		return false
	}
	if kind != isTerm && w.last != r+1 {
		w.broken(invStale)
	}
	if kind == isUnknown {
		a := w.attempt()
		if w.starts[a] > 0 && !w.forgot && !w.silent {
			w.broken(invSilent)
		}
	}
	if int(w.n) == len(w.log) {
		w.broken(tooMuch)
		return true
	}
	w.log[w.n] = mRecord{kind, r}
	w.n++
	x.read = w.n
	return true
}

// may reports whether a router may decide: it has renewed lately.
func (w *mWorld) may(r int8) bool { return w.now-w.routers[r].renewed < mStop }

// end a router: the supervisor starts it again as a standby.
func (w *mWorld) end(r int8) {
	w.routers[r] = mRouter{seen: w.rev, seenAt: w.now, read: w.n}
	w.reply[r] = 0
}

// steps are what the processes do next, in any order. Time goes on once none is left.
func (m model) steps(w mWorld) (next []mWorld) {
	do := func(f func(*mWorld)) {
		to := w
		f(&to)
		next = append(next, to)
	}
	for r := range int8(2) {
		if !w.routers[r].paused {
			m.routerSteps(w, r, do)
		}
	}
	for i, t := range w.tickets {
		if t.attempt > 0 && !t.held {
			do(func(w *mWorld) { m.deliver(w, i) })
		}
	}
	for a := int8(1); a <= 2; a++ {
		if w.runs[a] == 1 && !w.silent && w.now-w.began[a] >= mRun { // it must end by now
			do(func(w *mWorld) { m.finish(w, a) })
		}
	}
	return next
}

func (m model) routerSteps(w mWorld, r int8, do func(func(*mWorld))) {
	x := w.routers[r]
	foreign := false
	for _, rec := range w.log[x.read:w.n] {
		foreign = foreign || rec.kind == isTerm && rec.by != r
	}
	switch {
	case x.mode == standby:
		if x.seen != w.rev || x.read != w.n {
			do(func(w *mWorld) {
				y := &w.routers[r]
				if y.read = w.n; y.seen != w.rev {
					y.seen, y.seenAt = w.rev, w.now
				}
			})
		}
		free := int8(mFree)
		if !m.has(ruleFree) {
			free = 0
		}
		if x.seen == w.rev && w.now-x.seenAt >= free {
			do(func(w *mWorld) {
				w.rev++
				w.holder = r
				y := &w.routers[r]
				y.mode, y.seen, y.renewed = taking, w.rev, w.now
				if !m.has(ruleFollow) {
					w.last = r + 1
				}
			})
		}
		return
	case x.mode == taking && x.read != w.n && m.has(ruleFollow):
		do(func(w *mWorld) { w.routers[r].read = w.n })
		return
	case x.mode == taking && x.read != w.n: // it answers before it has followed
		do(func(w *mWorld) {
			if w.find(isIntent, w.n) && !w.find(isIntent, w.routers[r].read) {
				w.broken(invWhole)
			}
			w.routers[r].read = w.n
		})
		return
	case x.mode == taking:
		do(func(w *mWorld) {
			if m.has(ruleTerm) && !m.append(w, r, isTerm) {
				return
			}
			y := &w.routers[r]
			y.mode, y.termAt, w.last = leading, w.now, r+1
		})
		return
	}
	may := w.may(r) || !m.has(ruleExit)
	if foreign || !may {
		do(func(w *mWorld) { w.end(r) }) // beside what it has begun
	}
	switch {
	case !may:
	case w.find(isIntent, w.n) && !w.find(isIntent, x.read), w.ended(w.n) && !w.ended(x.read):
		do(func(w *mWorld) { w.broken(invWhole) }) // it answers a question meanwhile
	}
	if x.judged != 0 { // the decision is made, and a pause may have come between
		do(func(w *mWorld) {
			y := &w.routers[r]
			kind := y.judged
			y.judged = 0
			switch ok := m.append(w, r, kind); {
			case !ok:
				w.end(r)
			case kind == isIntent, kind == isTakeover:
				y.work = toTicket
			case kind == isDone, kind == isUnknown:
				y.work = idle
			}
		})
		return
	}
	switch {
	case may:
		m.decide(w, r, do)
	case x.work == toTicket && !m.has(ruleAge):
		m.ticket(r, w.attempt(), do)
	}
}

// ticket issues one, which a pause before it is sent does not make younger.
func (m model) ticket(r, attempt int8, do func(func(*mWorld))) {
	do(func(w *mWorld) {
		i := slices.IndexFunc(w.tickets[:], func(t mTicket) bool { return t.attempt == 0 })
		if i < 0 {
			return
		}
		w.tickets[i] = mTicket{attempt: attempt, beginBy: w.now + mBegin, to: r}
		w.routers[r].work, w.routers[r].ticketed = waits, w.now
	})
}

// decide is what a router that decides does.
func (m model) decide(w mWorld, r int8, do func(func(*mWorld))) {
	x := w.routers[r]
	judge := func(kind int8) { do(func(w *mWorld) { w.routers[r].judged = kind }) }
	a := w.attempt()
	switch {
	case x.work == toTicket:
		m.ticket(r, a, do)
	case x.work == waits && w.reply[r] != 0:
		do(func(w *mWorld) {
			w.routers[r].work = refused
			if w.reply[r] == 1 {
				w.routers[r].work = reported
			}
			w.reply[r] = 0
		})
	case x.work == refused && m.has(ruleNewTicket):
		do(func(w *mWorld) { w.routers[r].work = toTicket })
	case x.work == waits && w.now-x.ticketed > mBegin+2*mLeeway+mRun: // no report came
		if m.has(ruleAsk) {
			do(func(w *mWorld) { w.routers[r].work = asks })
		} else {
			judge(isUnknown)
		}
	case x.work == reported:
		judge(isDone)
	case x.work == asks:
		m.ask(w, r, do, judge)
	case x.work == idle && w.find(isIntent, x.read) && !w.ended(x.read):
		do(func(w *mWorld) { w.routers[r].work = asks })
	case x.work == idle && !w.find(isIntent, x.read) && w.now <= mFaults:
		judge(isIntent)
	case x.work == idle && !w.find(isOther, x.read) && w.now <= mFaults:
		judge(isOther)
	}
}

// ask the executors what became of the intent.
func (m model) ask(w mWorld, r int8, do func(func(*mWorld)), judge func(int8)) {
	x, a := w.routers[r], w.attempt()
	left := !m.has(ruleLeave) || w.now-x.termAt >= mLeave+mLeeway
	switch {
	case !w.silent && w.runs[a] == 2:
		do(func(w *mWorld) { w.routers[r].work = reported })
	case !w.silent && w.runs[a] == 1 && m.has(ruleRunning): // it is asked again
	case !left:
	case (!m.once || !m.has(ruleOnce)) && a == 1:
		judge(isTakeover)
	default:
		judge(isUnknown)
	}
}

// deliver a ticket to the executor.
func (m model) deliver(w *mWorld, i int) {
	t := w.tickets[i]
	w.tickets[i] = mTicket{}
	switch late := w.now+w.skew > t.beginBy+mLeeway; {
	case w.silent: // the message is lost with it
	case w.runs[t.attempt] != 0 && m.has(ruleSame):
	case late && m.has(ruleBeginBy):
		w.reply[t.to] = 2
	default:
		if w.ended(w.n) || t.attempt != w.attempt() {
			w.broken(invLate)
		}
		w.runs[t.attempt], w.began[t.attempt] = 1, w.now
		w.starts[t.attempt]++
		if w.starts[t.attempt] > 1 || m.once && w.starts[1]+w.starts[2] > 1 {
			w.broken(invOnce)
		}
	}
}

// finish a run. The report goes to the router that has asked for it, if it still waits.
func (m model) finish(w *mWorld, a int8) {
	w.runs[a] = 2
	if !m.has(ruleKeep) {
		w.runs[a] = 0
	}
	for r := range w.routers {
		if w.routers[r].work == waits {
			w.reply[r] = 1
		}
	}
}

// faults are what may go wrong now, and what may happen at any time.
func (m model) faults(w mWorld) (next []mWorld) {
	do := func(f func(*mWorld)) {
		to := w
		f(&to)
		next = append(next, to)
	}
	for a := int8(1); a <= 2; a++ {
		if w.runs[a] == 1 && !w.silent && w.now-w.began[a] < mRun {
			do(func(w *mWorld) { m.finish(w, a) })
		}
	}
	for i, t := range w.tickets {
		if t.held {
			do(func(w *mWorld) { w.tickets[i].held = false })
		}
	}
	for r := range int8(2) {
		if w.routers[r].paused {
			do(func(w *mWorld) { w.routers[r].paused = false })
		}
	}
	if w.faults == 0 || w.now > mFaults {
		return next
	}
	fault := func(f func(*mWorld)) { do(func(w *mWorld) { w.faults--; f(w) }) }
	for r := range int8(2) {
		if x := w.routers[r]; !x.paused && x.mode != standby {
			fault(func(w *mWorld) { w.end(r) })
			fault(func(w *mWorld) { w.routers[r].paused = true })
			fault(func(w *mWorld) { w.routers[r].noRenewal = true })
		}
		if w.reply[r] != 0 {
			fault(func(w *mWorld) { w.reply[r] = 0 })
		}
	}
	for i, t := range w.tickets {
		if t.attempt == 0 || t.held {
			continue
		}
		fault(func(w *mWorld) { w.tickets[i] = mTicket{} })
		fault(func(w *mWorld) { w.tickets[i].held = true })
		if other := 1 - i; w.tickets[other].attempt == 0 {
			fault(func(w *mWorld) { w.tickets[other] = t })
		}
	}
	if w.runs[1] != 0 {
		fault(func(w *mWorld) { // what is on its way to it dies with it
			w.runs, w.forgot, w.tickets = [3]int8{}, true, [2]mTicket{}
		})
		fault(func(w *mWorld) { w.silent = true })
	}
	return next
}

// tick lets time go on: those that decide renew the lease.
func (m model) tick(w mWorld) mWorld {
	w.now++
	for r := range int8(2) {
		x := &w.routers[r]
		if x.mode == standby || x.paused || x.noRenewal || w.holder != r || x.seen != w.rev {
			continue
		}
		w.rev++
		x.seen, x.renewed = w.rev, w.now
	}
	if w.now > mFaults+1 { // whoever was held up is not for ever
		for i := range w.tickets {
			w.tickets[i].held = w.tickets[i].held && w.now < mTold
		}
		for r := range w.routers {
			w.routers[r].paused = w.routers[r].paused && w.now < mTold
		}
	}
	return w
}

// explore every state; the first violation ends it.
func (m model) explore(bound int) (violation string, states int) {
	var stack []mWorld
	seen := map[mWorld]bool{}
	push := func(w mWorld) {
		if !seen[w] {
			seen[w] = true
			stack = append(stack, w)
		}
	}
	for _, skew := range []int8{-mLeeway, 0, mLeeway} {
		push(mWorld{faults: int8(bound), skew: skew})
	}
	for len(stack) > 0 {
		if len(seen) > mStates {
			return "too many states", len(seen)
		}
		w := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		switch w.violation {
		case "":
		case tooMuch:
			if m.without == ruleNone {
				return tooMuch, len(seen)
			}
			continue
		default:
			return w.violation, len(seen)
		}
		if w.now == mHorizon {
			if w.find(isIntent, w.n) && !w.ended(w.n) {
				return invEnds, len(seen)
			}
			continue
		}
		steps := m.steps(w)
		for _, to := range append(steps, m.faults(w)...) {
			push(to)
		}
		if len(steps) == 0 {
			push(m.tick(w))
		}
	}
	return "", len(seen)
}

// TestDeciderModel: no order of steps and faults breaks an invariant.
func TestDeciderModel(t *testing.T) {
	t.Parallel()
	for _, once := range []bool{true, false} {
		violation, states := model{once: once}.explore(3)
		if violation != "" {
			t.Errorf("once %t: broken after %d states: %s", once, states, violation)
		}
		t.Logf("once %t: %d states", once, states)
	}
}

// TestDeciderMutants: without a rule, an invariant that it is for is broken.
func TestDeciderMutants(t *testing.T) {
	t.Parallel()
	for without, want := range map[rule][]string{
		ruleBeginBy:   {invLate, invSilent},
		ruleAge:       {invLate, invSilent},
		ruleTerm:      {invStale},
		ruleFollow:    {invWhole},
		ruleLeave:     {invLate, invSilent},
		ruleKeep:      {invSilent},
		ruleExit:      {invWhole},
		ruleFree:      {invLate, invStale, invWhole},
		ruleSequence:  {invStale},
		ruleRunning:   {invSilent},
		ruleNewTicket: {invEnds},
		ruleSame:      {invOnce},
		ruleOnce:      {invOnce},
		ruleAsk:       {invSilent},
	} {
		t.Run(string(without), func(t *testing.T) {
			t.Parallel()
			violation, states := model{without: without, once: true}.explore(2)
			if !slices.Contains(want, violation) {
				t.Errorf("after %d states: %q, want one of %q", states, violation, want)
			}
		})
	}
}
