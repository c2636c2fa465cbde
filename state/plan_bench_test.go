package state

import (
	"fmt"
	"testing"

	"aob.dev/writ/intents/catalog"
)

// BenchmarkWrites measures applying a transition of a plan, with few and with many closed plans
// beside it: both must cost the same.
func BenchmarkWrites(b *testing.B) {
	for _, closed := range []int{100, 100_000} {
		b.Run(fmt.Sprint(closed, " closed"), func(b *testing.B) {
			d := New()
			add := func(id, ended string) *plan {
				p := &plan{View: catalog.PlanView{TenantID: "default", PlanID: id}}
				t := &task{Task: Task{ID: "task_" + id, Tenant: "default", Ended: ended}, plan: p}
				p.Tasks = []*task{t}
				d.plans["default/"+id], d.tasks["default/"+t.ID] = p, t
				return p
			}
			for i := range closed {
				add(fmt.Sprint("over_", i), "plan complete")
			}
			p := add("live", "")
			for b.Loop() {
				if got := p.writesOfTasks(); len(got) != 3 {
					b.Fatal(got)
				}
			}
		})
	}
}
