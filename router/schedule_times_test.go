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

// TestSummerTime: a time of day comes once a day, at the next existing moment, when clocks are
// changed. A line of every hour or oftener comes in even steps.
func TestSummerTime(t *testing.T) {
	for _, x := range []struct {
		cron, zone, after string
		want              []string
	}{
		// Left out.
		{"30 2 * * *", "Europe/Oslo", "2027-03-27T12:00:00Z", []string{"2027-03-28T01:00:00Z", "2027-03-29T00:30:00Z"}},
		{"30 2 14 3 *", "America/New_York", "2026-11-28T12:00:00Z", []string{"2027-03-14T07:00:00Z", "2028-03-14T06:30:00Z"}},
		{"*/20 2 * * *", "Europe/Oslo", "2027-03-28T00:50:00Z", []string{"2027-03-28T01:00:00Z", "2027-03-29T00:00:00Z"}},
		{"0 2,3 * * *", "Europe/Oslo", "2027-03-28T00:50:00Z", []string{"2027-03-28T01:00:00Z", "2027-03-29T00:00:00Z"}},
		{"0 0 * * *", "America/Sao_Paulo", "2018-11-03T12:00:00Z", []string{"2018-11-04T03:00:00Z", "2018-11-05T02:00:00Z"}},
		{"15 2 * * *", "Australia/Lord_Howe", "2027-10-02T12:00:00Z", []string{"2027-10-02T15:30:00Z", "2027-10-03T15:15:00Z"}},
		{"0 9 * * *", "Pacific/Apia", "2011-12-29T12:00:00Z", []string{"2011-12-29T19:00:00Z", "2011-12-30T10:00:00Z", "2011-12-30T19:00:00Z"}},
		// Twice.
		{"30 2 * * *", "Europe/Oslo", "2027-10-30T12:00:00Z", []string{"2027-10-31T00:30:00Z", "2027-11-01T01:30:00Z"}},
		{"30 2 * * *", "Europe/Oslo", "2027-10-31T01:15:00Z", []string{"2027-11-01T01:30:00Z"}},
		{"30 1,2 * * *", "America/New_York", "2027-11-07T05:00:00Z", []string{"2027-11-07T05:30:00Z", "2027-11-07T07:30:00Z"}},
		{"45 * * * *", "Australia/Lord_Howe", "2027-04-03T14:00:00Z", []string{"2027-04-03T14:45:00Z", "2027-04-03T16:15:00Z"}},
		// Every hour or oftener.
		{"0 * * * *", "Europe/Oslo", "2027-10-30T23:30:00Z", []string{"2027-10-31T00:00:00Z", "2027-10-31T01:00:00Z", "2027-10-31T02:00:00Z"}},
		{"*/30 * * * *", "Europe/Oslo", "2027-03-28T00:15:00Z", []string{"2027-03-28T00:30:00Z", "2027-03-28T01:00:00Z", "2027-03-28T01:30:00Z"}},
		{"0 * 1 7 *", "America/New_York", "2026-11-28T12:00:00Z", []string{"2027-07-01T04:00:00Z", "2027-07-01T05:00:00Z"}},
		{"0 * * * sun", "America/Sao_Paulo", "2018-02-18T01:30:00Z", []string{"2018-02-18T03:00:00Z", "2018-02-18T04:00:00Z"}},
		// Days that not every year has.
		{"0 9 29 2 *", "America/New_York", "2026-11-28T12:00:00Z", []string{"2028-02-29T14:00:00Z"}},
		{"0 9 31 * *", "", "2027-01-31T09:00:00Z", []string{"2027-03-31T09:00:00Z"}},
	} {
		due, err := timesOf(catalog.SchedulePut{Cron: x.cron, TimeZone: x.zone})
		if err != nil {
			t.Fatal(err)
		}
		at, _ := time.Parse(time.RFC3339, x.after)
		for _, want := range x.want {
			at = due.Next(at)
			if got := at.UTC().Format(time.RFC3339); got != want {
				t.Errorf("%q in %s after %s: %s, want %s", x.cron, x.zone, x.after, got, want)
				break
			}
			if !due.Next(at.Add(-time.Second)).Equal(at) {
				t.Errorf("%q in %s: %s is no time of its own", x.cron, x.zone, at)
			}
		}
	}
}
