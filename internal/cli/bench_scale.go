package cli

import (
	"errors"
	"fmt"
	"io"
	"os"

	"aob.dev/writ/internal/scale"
)

// simulation is what `writ bench cell --simulate` is asked.
type simulation struct {
	on             bool
	orders, agents []float64
	measured       string
	assume         []string
	seed           uint64
}

func (s *simulation) flags(c *command) {
	f := c.Flags()
	f.BoolVar(&s.on, "simulate", false, "for cell: measure nothing, and work out what an installation takes")
	f.Float64SliceVar(&s.orders, "orders-per-second", nil, "for --simulate: `N,…`, each a column of the answer")
	f.Float64SliceVar(&s.agents, "agents", nil, "for --simulate: `N,…` agents that work at once, each with an order every agent_seconds")
	f.StringVar(&s.measured, "measured", "", "for --simulate: `FILE` with the output of writ bench cell --json; without it, figures that writ brings")
	f.StringArrayVar(&s.assume, "assume", nil, "for --simulate: `NAME=VALUE` of an assumption; --json lists all; may be repeated")
	f.Uint64Var(&s.seed, "seed", 1, "for --simulate: of what happens at random")
}

// figures of a plan, by name.
type figures map[string]float64

type plan struct {
	SaturatesFirst string  `json:"saturates_first"`
	Figures        figures `json:"figures"`
}

func (s *simulation) answer() (answer, error) {
	q := scale.Question{Seed: s.seed, Assumptions: scale.Assumed()}
	for _, text := range s.assume {
		if err := q.Assumptions.Set(text); err != nil {
			return answer{}, usage(fmt.Errorf("--assume: %w", err))
		}
	}
	var err error
	if q.Measured, err = s.figures(); err != nil {
		return answer{}, usage(fmt.Errorf("--measured: %w", err))
	}
	loads := s.orders
	for _, n := range s.agents {
		loads = append(loads, n/q.Assumptions.Of("agent_seconds"))
	}
	if len(loads) == 0 {
		return answer{}, usage(errors.New("--simulate needs --orders-per-second or --agents"))
	}
	var all []*scale.Plan
	data := struct {
		Seed        uint64         `json:"seed"`
		Plans       []plan         `json:"plans"`
		Measured    scale.Measured `json:"measured"`
		Assumptions figures        `json:"assumptions"`
	}{Seed: s.seed, Measured: q.Measured, Assumptions: figures{}}
	for _, q.OrdersPerSecond = range loads {
		p, err := scale.Answer(q)
		if err != nil {
			return answer{}, usage(fmt.Errorf("%g orders/s: %w", q.OrdersPerSecond, err))
		}
		all = append(all, p)
		one := plan{p.SaturatesFirst, figures{}}
		for _, f := range p.Figures {
			one.Figures[f.Name] = f.Value
		}
		data.Plans = append(data.Plans, one)
	}
	for _, x := range q.Assumptions {
		data.Assumptions[x.Name] = x.Value
	}
	return answer{data: data, text: aligned(func(t io.Writer) { scale.Print(t, all) })}, nil
}

func (s *simulation) figures() (scale.Measured, error) {
	if s.measured == "" {
		return scale.Builtin()
	}
	f, err := os.Open(s.measured)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return scale.ReadMeasured(f)
}
