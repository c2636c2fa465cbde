package policies

import (
	"fmt"
	"testing"
)

// BenchmarkDecide measures a decision under the embedded tree: remembered, evaluated each time,
// and with every fourth intent unlike all before.
func BenchmarkDecide(b *testing.B) {
	e := engine(b, Embedded())
	in := sample()
	b.Run("remembered", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if r, err := e.Decide(b.Context(), in); err != nil || !r.Allow {
				b.Fatal(r, err)
			}
		}
	})
	b.Run("anew", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if r, err := e.Evaluate(b.Context(), in); err != nil || !r.Allow {
				b.Fatal(r, err)
			}
		}
	})
	b.Run("quarter_missed", func(b *testing.B) {
		b.ReportAllocs()
		ana := in["actor"]
		for i := 0; b.Loop(); i++ {
			if in["actor"] = ana; i%4 == 0 {
				in["actor"] = map[string]any{"user_id": fmt.Sprint(i), "tenant": "acme"}
			}
			if r, err := e.Decide(b.Context(), in); err != nil || !r.Allow {
				b.Fatal(r, err)
			}
		}
	})
}
