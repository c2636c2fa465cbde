package audit

import (
	"errors"
	"time"

	"aob.dev/writ/intents"
)

// slack is how far a decision's time may lie before its record's, or a record's
// before the latest so far, without being counted: a decision is timed when it begins,
// its record when it is committed.
const slack = time.Minute

// decided is the time that a decision gives itself, as it stands in the record;
// empty where the record holds none.
func (it *item) decided() string {
	switch {
	case it.order != nil:
		return it.order.facts.Now
	case it.release != nil:
		return it.release.Facts.Now
	default:
		return ""
	}
}

// decidedAt reads that time. What is no time is found by timed.
func (it *item) decidedAt() {
	it.now = it.At
	if now, err := time.Parse(time.RFC3339Nano, it.decided()); err == nil {
		it.now = now
	}
}

// timed holds a decision's time to its record's. Under the first rules they are
// the same. Later a record is never timed before an earlier one, so its time may
// come after the decision's, and never before it.
func (f *fold) timed(it *item) error {
	text := it.decided()
	switch {
	case it.order == nil && it.release == nil, text == intents.FormatTime(it.At):
		return nil
	case f.state.View().Rules() < intents.RulesStrict || intents.FormatTime(it.now) != text || it.now.After(it.At):
		return errors.New("the decision was made at another time than its record says")
	default:
		return nil
	}
}

// noteTime counts what a clock that stepped back has timed. That is a fact, not a
// fault: positions order the records, whatever the clocks showed.
func (f *fold) noteTime(it *item) {
	if it.At.Before(f.latest.Add(-slack)) || it.now.Before(it.At.Add(-slack)) {
		f.steps++
	}
	if it.At.After(f.latest) {
		f.latest = it.At
	}
}
