package ledger_test

import (
	"bytes"
	"log/slog"
	"path/filepath"
	"testing"

	"aob.dev/writ/intents"
	"aob.dev/writ/internal/testing/journaltest"
	"aob.dev/writ/storage/ledger"
)

// BenchmarkAppend is one leaf, from its record to the integrated tree, in
// batches as the sequencer makes them.
func BenchmarkAppend(b *testing.B) {
	j := journaltest.NewJournal(nil)
	for n := 0; int(j.Next()) < b.N; n++ {
		if err := commit(b.Context(), j, "acme", n); err != nil {
			b.Fatal(err)
		}
	}
	key := must[intents.Signer](b)(intents.GenerateSigner(intents.RoleLedger))
	l := must[*ledger.Ledger](b)(ledger.Open(b.Context(), ledger.Config{
		Dir: filepath.Join(b.TempDir(), "ledger"), Origin: "writ/test", Key: key,
		Secret: bytes.Repeat([]byte{7}, 32), Records: j, Log: slog.New(slog.DiscardHandler),
	}))
	b.ResetTimer()
	if _, err := l.Sync(b.Context()); err != nil {
		b.Fatal(err)
	}
	b.StopTimer()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "leaves/s")
	if err := l.Close(); err != nil {
		b.Fatal(err)
	}
}
