package audit_test

import (
	"crypto/ed25519"
	"runtime"
	"testing"
	"time"

	"aob.dev/writ/audit"
)

// BenchmarkVerify verifies and replays a bundle, and says how many orders a
// second that is, and what share of the processors bare signatures of the same
// orders, grants and receipts would take.
func BenchmarkVerify(b *testing.B) {
	w := newWorld(b)
	w.live(100)
	bundle := w.export(w.Journal, audit.Selection{})
	public, private, err := ed25519.GenerateKey(nil)
	w.Must(err)
	msg := make([]byte, 1200)
	sig := ed25519.Sign(private, msg)
	var orders int64
	var bare time.Duration
	for b.Loop() {
		r := w.verify(bundle, audit.Options{Trust: w.trust(), Replay: true})
		if !r.OK {
			b.Fatal(r.FirstBad)
		}
		orders += r.Orders
		b.StopTimer()
		began := time.Now()
		for range 200 {
			ed25519.Verify(public, msg, sig)
		}
		// Every order of this world has a grant of its own.
		bare += time.Since(began) / 200 * time.Duration(2*r.Orders+r.Receipts)
		b.StartTimer()
	}
	took := b.Elapsed()
	b.SetBytes(int64(len(bundle)))
	b.ReportMetric(float64(orders)/took.Seconds(), "orders/s")
	b.ReportMetric(took.Seconds()*float64(runtime.GOMAXPROCS(0))/bare.Seconds(), "×bare")
}
