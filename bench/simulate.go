package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"aob.dev/writ/bench/scale"
)

// simulation is what `bench cell --simulate` is asked.
type simulation struct {
	on              bool
	intents, agents floats
	measured        string
	assume          texts
	seed            uint64
}

// floats are numbers with commas between them.
type floats []float64

func (f *floats) String() string { return fmt.Sprint(*f) }

func (f *floats) Set(text string) error {
	for s := range strings.SplitSeq(text, ",") {
		n, err := strconv.ParseFloat(s, 64)
		if err != nil {
			return err
		}
		*f = append(*f, n)
	}
	return nil
}

// texts are the values of a flag that may be repeated.
type texts []string

func (t *texts) String() string { return strings.Join(*t, " ") }

func (t *texts) Set(text string) error {
	*t = append(*t, text)
	return nil
}

func (s *simulation) flags(f *flag.FlagSet) {
	f.BoolVar(&s.on, "simulate", false, "for cell: measure nothing, and work out what an installation takes")
	f.Var(&s.intents, "intents-per-second", "for --simulate: `N,…`, each a column of the answer")
	f.Var(&s.agents, "agents", "for --simulate: `N,…` agents that work at once, each with an intent every agent_seconds")
	f.StringVar(&s.measured, "measured", "", "for --simulate: `FILE` with the output of bench cell --json; without it, built-in figures")
	f.Var(&s.assume, "assume", "for --simulate: `NAME=VALUE` of an assumption; --json lists all; may be repeated")
	f.Uint64Var(&s.seed, "seed", 1, "for --simulate: of what happens at random")
}

func (s *simulation) print(out io.Writer, asJSON bool) error {
	q := scale.Question{Seed: s.seed, Assumptions: scale.DefaultAssumptions()}
	for _, text := range s.assume {
		if err := q.Assumptions.Set(text); err != nil {
			return fmt.Errorf("--assume: %w", err)
		}
	}
	var err error
	if q.Measured, err = s.read(); err != nil {
		return fmt.Errorf("--measured: %w", err)
	}
	loads := s.intents
	for _, n := range s.agents {
		loads = append(loads, n/q.Assumptions.Value("agent_seconds"))
	}
	if len(loads) == 0 {
		return errors.New("--simulate needs --intents-per-second or --agents")
	}
	var plans []*scale.Plan
	for _, q.IntentsPerSecond = range loads {
		p, err := scale.Answer(q)
		if err != nil {
			return fmt.Errorf("%g intents per second: %w", q.IntentsPerSecond, err)
		}
		plans = append(plans, p)
	}
	return printed(out, asJSON,
		map[string]any{"seed": s.seed, "plans": plans, "measured": q.Measured, "assumptions": q.Assumptions},
		func(t io.Writer) { scale.Print(t, plans) })
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
