package eval

import (
	"maps"
	"slices"
)

// Rate is how many of some cases went well.
type Rate struct {
	Name  string  `json:"name"`
	Cases int     `json:"cases"`
	Good  int     `json:"good"`
	Rate  float64 `json:"rate"`
	Min   float64 `json:"min,omitempty"` // lower bound of the rate
}

func (r *Rate) count(good bool) {
	r.Cases++
	if good {
		r.Good++
	}
	r.Rate = float64(r.Good) / float64(r.Cases)
}

// Result is a case and its outcome.
type Result struct {
	File    string   `json:"file"`
	Case    int      `json:"case"` // counted from 1
	Message string   `json:"message"`
	OK      bool     `json:"ok"`
	Wrong   []string `json:"wrong,omitempty"`
	Outcome
}

// Report has the results of all cases.
type Report struct {
	OK      bool     `json:"ok"` // no set and no pair is below its threshold
	All     Rate     `json:"all"`
	Sets    []Rate   `json:"sets"`
	Pairs   []Rate   `json:"pairs"`             // by agent before → agent now: cases in which the agents were right
	Missing []string `json:"missing,omitempty"` // pairs of these agents that no case is about
	Results []Result `json:"results"`

	min   float64
	pairs map[[2]string]*Rate
}

// NewReport of rates that must not be below min; sets may have thresholds of their own.
func NewReport(least float64) *Report {
	return &Report{All: Rate{Name: "all"}, Sets: []Rate{}, Pairs: []Rate{}, min: least, pairs: map[[2]string]*Rate{}}
}

// Begin begins with the next set.
func (r *Report) Begin(s Set) {
	least := r.min
	if s.Min != nil {
		least = *s.Min
	}
	r.Sets = append(r.Sets, Rate{Name: s.File, Min: least})
}

// Add judges the next case of the set.
func (r *Report) Add(c Case, s Outcome) Result {
	set := &r.Sets[len(r.Sets)-1]
	out := Result{File: set.Name, Case: set.Cases + 1, Message: c.Message, Wrong: c.Judge(s), Outcome: s}
	out.OK = len(out.Wrong) == 0
	r.All.count(out.OK)
	set.count(out.OK)
	r.Results = append(r.Results, out)
	if len(c.History) == 0 {
		return out
	}
	for _, from := range c.History[len(c.History)-1].Agents {
		for _, to := range c.Agents {
			pair := [2]string{from, to}
			if r.pairs[pair] == nil {
				r.pairs[pair] = &Rate{Name: from + " → " + to, Min: r.min}
			}
			r.pairs[pair].count(c.Routed(s))
		}
	}
	return out
}

// End judges the rates: each set and each pair by its own threshold.
func (r *Report) End() {
	r.OK = true
	for _, s := range r.Sets {
		r.OK = r.OK && s.Rate >= s.Min
	}
	agents := map[string]bool{}
	for pair := range r.pairs {
		agents[pair[0]], agents[pair[1]] = true, true
	}
	names := slices.Sorted(maps.Keys(agents))
	for _, from := range names {
		for _, to := range names {
			if rate := r.pairs[[2]string{from, to}]; rate != nil {
				r.Pairs = append(r.Pairs, *rate)
				r.OK = r.OK && rate.Rate >= r.min
			} else if from != to {
				r.Missing = append(r.Missing, from+" → "+to)
			}
		}
	}
}
