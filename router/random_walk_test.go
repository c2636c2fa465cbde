package router_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"

	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/testing/routertest"
)

// playWalk plays some plans of one seed and rebuilds the state from their journal.
func playWalk(t *testing.T, seed uint64) map[catalog.PlanStatus]int {
	t.Helper()
	w := routertest.New(t, routertest.Options{})
	w.PrepareWalks()
	r := rand.New(rand.NewPCG(seed, 1))
	var plans []string
	ends := map[catalog.PlanStatus]int{}
	for i := range 3 {
		k := w.BeginWalk(fmt.Sprintf("p%d", i), r)
		plans = append(plans, k.ID)
		for range 60 {
			k.Step()
		}
		s, _ := k.Status()
		ends[s]++
	}
	var tasks []string
	for i := range 200 {
		tasks = append(tasks, fmt.Sprintf("task_%d", i))
	}
	live := snapshot(t, w.Dir, plans, tasks)
	if d := cmp.Diff(live, snapshot(t, rebuild(w), plans, tasks)); d != "" {
		t.Errorf("seed %d: %s", seed, d)
	}
	return ends
}

// Random walks of fixed seeds; among them all ends of a plan are reached.
func TestRandomTransitions(t *testing.T) {
	ends := map[catalog.PlanStatus]int{}
	for seed := range uint64(12) {
		for s, n := range playWalk(t, seed) {
			ends[s] += n
		}
	}
	if ends[catalog.PlanFailed] == 0 || ends[catalog.PlanComplete] == 0 {
		t.Errorf("the walks reach only %v", ends)
	}
}

func FuzzTransitions(f *testing.F) {
	for seed := range uint64(3) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, seed uint64) { playWalk(t, seed) })
}
