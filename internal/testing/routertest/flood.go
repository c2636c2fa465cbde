package routertest

import (
	"encoding/json"
	"fmt"
	"strings"

	"aob.dev/writ/intents"
	"aob.dev/writ/state"
	"aob.dev/writ/storage"
)

// Flood makes n intents of a base, each another one and nearly as large as an intent
// may be, that the stages behind the signature refuse in different ways.
func (w *World) Flood(base Intent, n int) [][]byte {
	w.Helper()
	large := strings.Repeat("x", 30<<10)
	base.Grant = func(g *intents.Grant) { g.ID = "flood" } // one grant for all
	out := make([][]byte, n)
	for i := range out {
		o := base
		switch i % 4 {
		case 0:
			o.Type = "no.such"
		case 1:
			o.Type = "plan.open" // of another role
		case 2:
			o.Ctx.PlanID = "plan_of_nobody"
		default:
		}
		o.Args, o.Key = map[string]string{"wrong": fmt.Sprint(i, large)}, fmt.Sprint("flood", i)
		out[i] = w.Sign(o)
	}
	return out
}

// Usage sums up the records from a position on: intents, their bytes, and counter records.
type Usage struct {
	Intents, Bytes, Counters int
	Counted                  map[intents.Code]int64
}

// Usage since a position.
func (w *World) Usage(from int64) Usage {
	w.Helper()
	s := Usage{Counted: map[intents.Code]int64{}}
	for r, err := range w.Journal.Scan(w.Context(), from) {
		w.Must(err)
		if r.Kind != storage.KindControl {
			s.Intents++
			for _, part := range r.Parts {
				s.Bytes += len(part)
			}
			continue
		}
		var c state.Control
		w.Must(json.Unmarshal(r.Parts[storage.PartControl], &c))
		s.Counters++
		for code, n := range c.Counters.Refused {
			s.Counted[code] += n
		}
	}
	return s
}
