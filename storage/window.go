package storage

import "time"

// KeptFor is how long, by the times of records, an order that has ended stays in memory:
// its key, its position and the subjects that it touched. It leaves up to a period later.
// From then on it is found in the records only, and its key is free.
const KeptFor = 48 * time.Hour

// windowPeriod is how often things leave: each time costs a walk over all that is kept.
const windowPeriod = 6 * time.Hour

// Window says which records are old, by their times alone: all that follow the same
// records forget the same things at the same record. The zero value has seen none.
type Window struct {
	// Cut is the position before which every record is old.
	Cut int64
	// Periods that are not old, in order, each with the position of its first record.
	Periods []Period
}

// Period is a span of time with records.
type Period struct {
	Number int64 // since 1970
	First  int64 // position
}

// Pass takes the next record, with the latest time up to it, and says whether Cut has
// moved.
func (w *Window) Pass(position int64, latest time.Time) bool {
	now := latest.UnixMilli() / windowPeriod.Milliseconds()
	if n := len(w.Periods); n > 0 && w.Periods[n-1].Number >= now {
		return false
	}
	w.Periods = append(w.Periods, Period{now, position})
	oldest := now - int64(KeptFor/windowPeriod)
	cut := w.Cut
	for w.Periods[0].Number < oldest {
		w.Periods = w.Periods[1:]
		w.Cut = w.Periods[0].First
	}
	return w.Cut > cut
}
