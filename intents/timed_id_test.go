package intents

import (
	"regexp"
	"testing"
	"time"
)

func TestTimedID(t *testing.T) {
	now := time.Date(2026, 7, 1, 10, 0, 0, 123_456_789, time.UTC)
	made := now.Truncate(time.Millisecond)
	for _, c := range []struct {
		name, id string
		ok       bool
	}{
		{"fresh", NewTimedID(KindPlan, now), true},
		{"an hour old", TimedID(KindPlan, now.Add(-time.Hour), "x"), false}, // by a fraction of a millisecond
		{"almost an hour old", TimedID(KindPlan, now.Add(-time.Hour+time.Millisecond), "x"), true},
		{"5 s ahead", TimedID(KindPlan, now.Add(Leeway), "x"), true},
		{"more than 5 s ahead", TimedID(KindPlan, now.Add(Leeway+time.Millisecond), "x"), false},
		{"not unique", TimedID(KindPlan, now, ""), false},
		{"of another kind", TimedID(KindTask, now, "x"), false},
		{"without time", "plan_1", false},
		{"upper-case", "plan_000MR2Z3F0Rx", false},
		{"signed", "plan_+0mr2z3f0rx", false},
		{"before 1970", TimedID(KindPlan, time.Unix(-5, 0), "x"), false},
		{"the last one there is", "plan_zzzzzzzzzzzx", false},
		{"empty", "", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			if reason := CheckTimedID(KindPlan, c.id, now); (reason == "") != c.ok {
				t.Errorf("%s: %q", c.id, reason)
			}
		})
	}
	if reason := CheckTimedID(KindTask, TimedID(KindTask, made.Add(-time.Hour), "x"), made); reason != "" {
		t.Errorf("exactly an hour old: %s", reason)
	}
	if at, ok := timeOfID(KindTask, TimedID(KindTask, now, "x")); !ok || !at.Equal(made) {
		t.Errorf("%v %t, want %v", at, ok, made)
	}
	if id := NewTimedID(KindTask, now); !regexp.MustCompile(`^task_[0-9a-z]{26}$`).MatchString(id) || id == NewTimedID(KindTask, now) {
		t.Error(id)
	}
}
