package audit_test

import (
	"crypto/ed25519"
	"runtime"
	"testing"
	"time"

	"aob.dev/writ/audit"
)

// BenchmarkVerify verifies and replays a bundle, and reports how many intents a
// second that is, and the share of the processors that bare signatures of the same
// intents and grants would take.
func BenchmarkVerify(b *testing.B) {
	w := newWorld(b)
	w.live(100)
	bundle := w.export(w.Journal, audit.Selection{})
	public, private, err := ed25519.GenerateKey(nil)
	w.Must(err)
	msg := make([]byte, 1200)
	sig := ed25519.Sign(private, msg)
	var total int64
	var bare time.Duration
	for b.Loop() {
		r := w.verify(bundle, audit.Options{Trust: w.trust(), Replay: true})
		if !r.OK {
			b.Fatal(r.FirstBad)
		}
		total += r.Intents
		b.StopTimer()
		began := time.Now()
		for range 200 {
			ed25519.Verify(public, msg, sig)
		}
		// Every intent of this world has a grant of its own.
		bare += time.Since(began) / 200 * time.Duration(2*r.Intents)
		b.StartTimer()
	}
	took := b.Elapsed()
	b.SetBytes(int64(len(bundle)))
	b.ReportMetric(float64(total)/took.Seconds(), "intents/s")
	b.ReportMetric(took.Seconds()*float64(runtime.GOMAXPROCS(0))/bare.Seconds(), "×bare")
}
