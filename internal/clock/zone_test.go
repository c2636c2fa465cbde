package clock

import (
	"testing"
	"time"
	_ "time/tzdata"
)

// TestIn: every reading of a clock is one moment: the first of two, and the change itself where the clock
// leaves it out. Readings that follow each other are moments that do.
func TestIn(t *testing.T) {
	for _, x := range []struct{ zone, wall, want string }{
		{"Europe/Oslo", "2027-01-01T09:00:00Z", "2027-01-01T08:00:00Z"},
		{"Europe/Oslo", "2027-03-28T02:30:00Z", "2027-03-28T01:00:00Z"},         // left out
		{"Europe/Oslo", "2027-03-28T03:00:00Z", "2027-03-28T01:00:00Z"},         // the first that there is
		{"Europe/Oslo", "2027-10-31T02:30:00Z", "2027-10-31T00:30:00Z"},         // twice
		{"Europe/Oslo", "2027-10-31T03:00:00Z", "2027-10-31T02:00:00Z"},         // once again
		{"America/New_York", "2027-03-14T02:30:00Z", "2027-03-14T07:00:00Z"},    // left out
		{"America/New_York", "2027-11-07T01:30:00Z", "2027-11-07T05:30:00Z"},    // twice
		{"America/Sao_Paulo", "2018-11-04T00:00:00Z", "2018-11-04T03:00:00Z"},   // a midnight left out
		{"Australia/Lord_Howe", "2027-04-04T01:45:00Z", "2027-04-03T14:45:00Z"}, // half an hour
		{"Pacific/Apia", "2011-12-30T12:00:00Z", "2011-12-30T10:00:00Z"},        // a day
		{"UTC", "2028-02-29T23:59:59.999Z", "2028-02-29T23:59:59.999Z"},
	} {
		zone, err := time.LoadLocation(x.zone)
		if err != nil {
			t.Fatal(err)
		}
		wall, _ := time.Parse(time.RFC3339, x.wall)
		if got := In(zone, wall).UTC().Format(time.RFC3339Nano); got != x.want {
			t.Errorf("%s %s: %s, want %s", x.zone, x.wall, got, x.want)
		}
	}
	for _, name := range []string{"Europe/Oslo", "America/New_York", "America/Sao_Paulo", "Australia/Lord_Howe", "Pacific/Apia", "Africa/Casablanca"} {
		zone, err := time.LoadLocation(name)
		if err != nil {
			t.Fatal(err)
		}
		wall := time.Date(2011, 12, 1, 0, 0, 0, 0, time.UTC)
		for last := In(zone, wall); wall.Year() < 2020; wall = wall.Add(10 * time.Minute) {
			now := In(zone, wall)
			if now.Before(last) || Reading(now).Before(wall) {
				t.Fatalf("%s: %s is %s, behind %s", name, wall, now, last)
			}
			last = now
		}
	}
}
