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

// decided returns the time of a decision as recorded;
// empty if the record has none.
func (it *item) decided() string {
	switch {
	case it.intent != nil:
		return it.intent.inputs.Now
	case it.release != nil:
		return it.release.Inputs.Now
	default:
		return ""
	}
}

// decidedAt reads that time. What is no time is found by timed.
func (it *item) decidedAt() {
	it.now = it.At
	text := it.decided()
	if text == "" {
		return
	}
	if now, err := time.Parse(time.RFC3339Nano, text); err == nil {
		it.now = now
	}
}

// timed holds a decision's time to its record's. A record is never timed before an
// earlier one, so its time may come after the decision's, and never before it.
func (f *applier) timed(it *item) error {
	text := it.decided()
	switch {
	case it.intent == nil && it.release == nil, text == intents.FormatTime(it.At):
		return nil
	case intents.FormatTime(it.now) != text || it.now.After(it.At):
		return errors.New("the decision was made at another time than its record says")
	default:
		return nil
	}
}

// noteTime counts the records timed by a clock that stepped back. That is not a
// fault: positions order the records, whatever the clocks showed.
func (f *applier) noteTime(it *item) {
	if it.At.Before(f.latest.Add(-slack)) || it.now.Before(it.At.Add(-slack)) {
		f.steps++
	}
	if it.At.After(f.latest) {
		f.latest = it.At
	}
}
