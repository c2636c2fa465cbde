package audit

import (
	"fmt"
	"strings"
	"time"
)

// Report is the result of a verification; scripts depend on its first members.
type Report struct {
	OK           bool    `json:"ok"`
	Anchored     bool    `json:"anchored"`  // to a root key that the auditor has pinned
	Witnessed    bool    `json:"witnessed"` // all of the log: by third parties whom the auditor has pinned
	Complete     bool    `json:"complete"`  // nothing of the log, or of the tenant, is left out
	Records      int64   `json:"records"`
	Withheld     int64   `json:"withheld"` // records of which a part is not shown
	Ended        int64   `json:"ended"`    // intents without the texts beside them, as their plans have ended
	FirstBad     *Bad    `json:"first_bad"`
	Unreplayable int64   `json:"unreplayable"`
	Seconds      float64 `json:"seconds"`

	Origin   string           `json:"origin"`
	Tenant   string           `json:"tenant,omitempty"`
	From     int64            `json:"from"`
	Size     int64            `json:"size"`    // leaves of the last checkpoint
	KeySet   int64            `json:"key_set"` // version of the last one in the bundle: compare it with the published one
	Intents  int64            `json:"intents"`
	Replayed int64            `json:"replayed"`
	Why      map[string]int64 `json:"unreplayable_why,omitempty"`

	// ClockSteps are records, or decisions in them, timed more than a minute before
	// an earlier record: the clock had stepped back. Positions decide.
	ClockSteps int64 `json:"clock_steps,omitempty"`

	// Next is what to do about a bundle that is not valid.
	Next string `json:"next,omitempty"`

	WitnessedBy   []string `json:"witnessed_by,omitempty"`
	WitnessedSize int64    `json:"witnessed_size,omitempty"` // leaves of the checkpoint that they cosigned
}

// Bad names the first record at which the bundle does not hold. Position -1: it
// is not a record, but the bundle as a whole.
type Bad struct { //nolint:errname // a finding first, an error where one is wanted
	Position int64  `json:"position"`
	IntentID string `json:"intent_id"`
	Reason   string `json:"reason"`
}

func (b *Bad) Error() string {
	if b.Position < 0 {
		return b.Reason
	}
	s := fmt.Sprintf("record %d", b.Position)
	if b.IntentID != "" {
		s += " (" + b.IntentID + ")"
	}
	return s + ": " + b.Reason
}

// before reports that b is to be named rather than another.
func (b *Bad) before(other *Bad) bool {
	if other == nil || other.Position < 0 {
		return other == nil || b.Position >= 0
	}
	return b.Position >= 0 && b.Position < other.Position
}

// next says which command is to be typed after a verification that failed.
func (o Options) next(origin string) string {
	switch {
	case o.Trust != nil && o.Trust.Origin != origin:
		return "writ audit trust, on the machine with the log, prints the trust file of that log"
	}
	export := "writ audit export --out FILE"
	if o.Trust != nil && o.Trust.Checkpoint != "" {
		export += " --since-checkpoint CHECKPOINT"
	}
	return "keep this file, and export the bundle again on the machine with the log: " + export +
		". If that bundle is not valid either, writ audit fsck there says what is damaged"
}

// String is the report for people: what was verified, and what was not.
func (r Report) String() string {
	var b strings.Builder
	verdict := "valid"
	if !r.OK {
		verdict = "NOT VALID"
	}
	fmt.Fprintf(&b, "%s: %d records, %d intents of %s up to position %d, in %.1f s\n", verdict, r.Records, r.Intents, r.Origin, r.Size-1, r.Seconds)
	if r.FirstBad != nil {
		fmt.Fprintf(&b, "first bad: %s\nnext: %s\n", r.FirstBad, r.Next)
	}
	if r.Replayed+r.Unreplayable > 0 {
		fmt.Fprintf(&b, "replayed: %d decisions agree", r.Replayed)
		if r.Unreplayable > 0 {
			fmt.Fprintf(&b, "; %d cannot be decided again", r.Unreplayable)
		}
		b.WriteString("\n")
	}
	for reason, n := range r.Why {
		fmt.Fprintf(&b, "  %d: %s\n", n, reason)
	}
	if r.ClockSteps > 0 {
		fmt.Fprintf(&b, "clock: %d records were decided more than a minute before what stands before them, by a clock that had stepped back; positions decide\n", r.ClockSteps)
	}
	if r.Withheld > 0 {
		fmt.Fprintf(&b, "withheld: parts of %d records are not shown; of these only that they are in the log is known\n", r.Withheld)
	}
	if r.Ended > 0 {
		fmt.Fprintf(&b, "ended: of %d intents the texts beside them are gone, as their plans have ended: no prompt of theirs can be made again\n", r.Ended)
	}
	if !r.Anchored {
		b.WriteString("unanchored: the bundle agrees with itself; pin its root key with --trust to know whose it is\n")
	}
	switch {
	case r.OK && len(r.WitnessedBy) > 0:
		fmt.Fprintf(&b, "witnessed: by %s up to position %d\n", strings.Join(r.WitnessedBy, ", "), r.WitnessedSize-1)
	default:
		b.WriteString("unwitnessed: no third party has cosigned the checkpoint; compare it with one that you got before\n")
	}
	if !r.Complete {
		b.WriteString("completeness: unproven: records may have been left out of this bundle\n")
	}
	return b.String()
}

func since(t time.Time) float64 {
	return float64(time.Since(t).Milliseconds()) / 1000
}
