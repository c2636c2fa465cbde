package eval

import (
	"cmp"
	"maps"
	"slices"
)

// Rate is how many of some cases went well.
type Rate struct {
	Name  string  `json:"name"`
	Cases int     `json:"cases"`
	Good  int     `json:"good"`
	Rate  float64 `json:"rate"`
	Min   float64 `json:"min,omitempty"` // what the rate must not be below
}

func (r *Rate) count(good bool) {
	r.Cases++
	if good {
		r.Good++
	}
	r.Rate = float64(r.Good) / float64(r.Cases)
}

// Result is a case and what became of it.
type Result struct {
	File    string   `json:"file"`
	Line    int      `json:"line"`
	Message string   `json:"message"`
	OK      bool     `json:"ok"`
	Wrong   []string `json:"wrong,omitempty"`
	Seen
}

// Report is what came out of all cases.
type Report struct {
	OK      bool     `json:"ok"` // no rate is below its threshold
	All     Rate     `json:"all"`
	Sets    []Rate   `json:"sets"`
	Pairs   []Rate   `json:"pairs"`             // by agent before → agent now: cases in which the agents were right
	Missing []string `json:"missing,omitempty"` // pairs of these agents that no case is about
	Results []Result `json:"results"`

	min   float64
	pairs map[pair]*Rate
}

// pair is a change from one agent to another, or to itself.
type pair struct{ from, to string }

func (p pair) String() string { return p.from + " → " + p.to }

// NewReport of rates that must not be below min; sets may have thresholds of their own.
func NewReport(least float64) *Report {
	return &Report{All: Rate{Name: "all"}, Sets: []Rate{}, Pairs: []Rate{}, min: least, pairs: map[pair]*Rate{}}
}

// Begin begins with the next set.
func (r *Report) Begin(s Set) {
	least := r.min
	if s.Min != nil {
		least = *s.Min
	}
	r.Sets = append(r.Sets, Rate{Name: s.File, Min: least})
}

// Add judges a case of the set.
func (r *Report) Add(c Case, s Seen) Result {
	set := &r.Sets[len(r.Sets)-1]
	out := Result{File: set.Name, Line: c.Line, Message: c.Message, Wrong: c.Judge(s), Seen: s}
	out.OK = len(out.Wrong) == 0
	r.All.count(out.OK)
	set.count(out.OK)
	if n := len(c.History); n > 0 {
		for _, from := range c.History[n-1].Agents {
			for _, to := range c.Agents {
				p := pair{from, to}
				if r.pairs[p] == nil {
					r.pairs[p] = &Rate{Name: p.String(), Min: r.min}
				}
				r.pairs[p].count(c.Routed(s))
			}
		}
	}
	r.Results = append(r.Results, out)
	return out
}

// End judges the rates: each set and each pair by its own threshold.
func (r *Report) End() {
	r.OK = true
	for _, s := range r.Sets {
		r.OK = r.OK && s.Rate >= s.Min
	}
	agents := map[string]bool{}
	for _, p := range slices.SortedFunc(maps.Keys(r.pairs), func(a, b pair) int {
		return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(a.to, b.to))
	}) {
		r.Pairs = append(r.Pairs, *r.pairs[p])
		r.OK = r.OK && r.pairs[p].Rate >= r.min
		agents[p.from], agents[p.to] = true, true
	}
	names := slices.Sorted(maps.Keys(agents))
	for _, from := range names {
		for _, to := range names {
			if p := (pair{from, to}); from != to && r.pairs[p] == nil {
				r.Missing = append(r.Missing, p.String())
			}
		}
	}
}
