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

func (s *simulation) answer() (answer, error) {
	q := scale.Question{Seed: s.seed, Assumptions: scale.Assumed()}
	for _, text := range s.assume {
		if err := q.Assumptions.Set(text); err != nil {
			return answer{}, usage(fmt.Errorf("--assume: %w", err))
		}
	}
	var err error
	if q.Measured, err = s.read(); err != nil {
		return answer{}, usage(fmt.Errorf("--measured: %w", err))
	}
	loads := s.orders
	for _, n := range s.agents {
		loads = append(loads, n/q.Assumptions.Of("agent_seconds"))
	}
	if len(loads) == 0 {
		return answer{}, usage(errors.New("--simulate needs --orders-per-second or --agents"))
	}
	var plans []*scale.Plan
	for _, q.OrdersPerSecond = range loads {
		p, err := scale.Answer(q)
		if err != nil {
			return answer{}, usage(fmt.Errorf("%g orders/s: %w", q.OrdersPerSecond, err))
		}
		plans = append(plans, p)
	}
	return answer{
		data: map[string]any{"seed": s.seed, "plans": plans, "measured": q.Measured, "assumptions": q.Assumptions},
		text: aligned(func(t io.Writer) { scale.Print(t, plans) }),
	}, nil
}

func (s *simulation) read() (scale.Measured, error) {
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
