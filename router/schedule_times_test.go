package router

import (
	"math/rand/v2"
	"testing"
	"time"

	"aob.dev/writ/intents/catalog"
)

// TestNewest: of many missed times the newest is found, as by counting all of them.
func TestNewest(t *testing.T) {
	first := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 1))
	for _, spec := range []string{"* * * * *", "*/7 3 * * *", "0 9 * * mon-fri", "30 2 * * *", "0 0 1 * *", "0 0 29 2 *", "0 0 1 jan *"} {
		for _, zone := range []string{"", "Europe/Oslo", "America/Sao_Paulo", "Australia/Lord_Howe"} {
			times, err := timesOf(catalog.SchedulePut{Cron: spec, TimeZone: zone})
			if err != nil {
				t.Fatal(err)
			}
			begin := times.Next(first)
			now := begin.Add(time.Duration(r.Int64N(int64(40 * 24 * time.Hour))))
			want := begin
			for next := begin; !next.After(now); next = times.Next(next) {
				want = next
			}
			if got := newest(times, begin, now); !got.Equal(want) {
				t.Errorf("%s %s from %s to %s: %s, want %s", spec, zone, begin, now, got, want)
			}
		}
	}
}
