package recorder_test

import (
	"fmt"
	"testing"

	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/testing/routertest"
)

// benchPlans make some 1,600 records, more than a few batches.
const benchPlans = 60

// worked is a world with a number of plans behind it.
func worked(tb testing.TB, plans int) *routertest.World {
	tb.Helper()
	w := routertest.New(tb, routertest.Options{})
	w.Pin("feed", catalog.Pure)
	for i := range plans {
		task := w.Begun(fmt.Sprintf("plan_%d", i), "feed").Started(1)
		for n := range 8 {
			w.Do(task.CallIntent("feed", fmt.Sprintf(`{"n":%d}`, n)))
		}
	}
	return w
}

// BenchmarkRebuild projects a whole journal into an empty store.
func BenchmarkRebuild(b *testing.B) {
	w := worked(b, benchPlans)
	for b.Loop() {
		f := follow(b, w, documents(b))
		f.caughtUp()
		f.stop()
	}
	b.ReportMetric(float64(w.Journal.Next())*float64(b.N)/b.Elapsed().Seconds(), "records/s")
}
