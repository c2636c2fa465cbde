package clock

import "time"

// In is the moment at which the clocks of a zone show the reading of wall, whose own zone is
// ignored. For a reading shown twice it is the first; for a skipped one it is the moment of the
// skip, which is the next existing one.
func In(zone *time.Location, wall time.Time) time.Time {
	wall = Reading(wall)
	t := time.Date(wall.Year(), wall.Month(), wall.Day(), wall.Hour(), wall.Minute(), wall.Second(), wall.Nanosecond(), zone)
	begin, end := t.ZoneBounds()
	switch shown := Reading(t); {
	case shown.Before(wall) && !end.IsZero():
		return end
	case shown.After(wall) && !begin.IsZero():
		return begin
	case begin.IsZero():
		return t
	}
	_, before := begin.Add(-time.Nanosecond).Zone()
	if first := wall.Add(-time.Duration(before) * time.Second); first.Before(begin) {
		return first.In(zone)
	}
	return t
}

// Reading is what the clocks of a time's zone show then, as if it were UTC.
func Reading(t time.Time) time.Time {
	return time.Date(t.Year(), t.Month(), t.Day(), t.Hour(), t.Minute(), t.Second(), t.Nanosecond(), time.UTC)
}
