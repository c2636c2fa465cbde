package routertest

import (
	"encoding/json"
	"fmt"
	"strings"

	"aob.dev/writ/intents"
	"aob.dev/writ/state"
	"aob.dev/writ/storage"
)

// Flood makes n orders of a base, each another one and nearly as large as an order
// may be, that the stages behind the signature refuse in different ways.
func (w *World) Flood(base Order, n int) [][]byte {
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
		out[i] = w.Seal(o)
	}
	return out
}

// Spent sums up the records from a position on: orders, their bytes, and counter records.
type Spent struct {
	Orders, Bytes, Counters int
	Counted                 map[intents.Code]int64
}

// Spent since a position.
func (w *World) Spent(from int64) Spent {
	w.Helper()
	s := Spent{Counted: map[intents.Code]int64{}}
	for r, err := range w.Journal.Scan(w.Context(), from) {
		w.Must(err)
		if r.Kind != storage.KindControl {
			s.Orders++
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
