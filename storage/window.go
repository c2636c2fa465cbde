package storage

import "time"

// KeptFor is how long, by the times of records, an intent that has ended stays in memory:
// its key, its position and the subjects that it wrote. It is removed up to a period later.
// From then on it is found in the records only, and its key is free.
const KeptFor = 48 * time.Hour

// windowPeriod is how often entries are removed: each time costs a walk over all retained ones.
const windowPeriod = 6 * time.Hour

// Window decides which records are old, by their times alone: all followers of the same
// records drop the same entries at the same record. The zero value has no records.
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

// Pass takes the next record, with the latest time up to it, and reports whether Cut has
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
