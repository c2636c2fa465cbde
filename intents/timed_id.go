package intents

import (
	"crypto/rand"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Kinds of ids that carry their time.
const (
	KindPlan = "plan"
	KindTask = "task"
)

// MaxIDAge is the largest age of a plan's or task's id when it is first judged.
// A closed plan stays in the state longer than that, so that it cannot be opened
// again.
const MaxIDAge = time.Hour

// idTime is how many base-36 characters of Unix milliseconds an id has.
const idTime = 11

// TimedID is an id that carries its time: "plan_" or "task_", the milliseconds since
// 1970 in base 36, and what makes it unique.
func TimedID(kind string, at time.Time, unique string) string {
	ms := strconv.FormatInt(max(at.UnixMilli(), 0), 36)
	return kind + "_" + strings.Repeat("0", idTime-len(ms)) + ms + unique
}

// NewTimedID is a fresh one: 75 random bits make it unique.
func NewTimedID(kind string, now time.Time) string {
	return TimedID(kind, now, strings.ToLower(rand.Text())[:15])
}

// CheckTimedID returns why an id may not be used at a time; empty: it may.
func CheckTimedID(kind, id string, now time.Time) (reason string) {
	at, ok := timeOfID(kind, id)
	switch {
	case !ok:
		return fmt.Sprintf("must be %s_, the Unix milliseconds as %d base-36 characters, and what makes it unique", kind, idTime)
	case now.Sub(at) > MaxIDAge:
		return "was made more than an hour ago: make a new one"
	case at.Sub(now) > Leeway:
		return "was made in the future: the maker's clock is ahead"
	default:
		return ""
	}
}

func timeOfID(kind, id string) (time.Time, bool) {
	rest, ok := strings.CutPrefix(id, kind+"_")
	if !ok || len(rest) <= idTime || strings.Trim(rest[:idTime], "0123456789abcdefghijklmnopqrstuvwxyz") != "" {
		return time.Time{}, false
	}
	ms, err := strconv.ParseInt(rest[:idTime], 36, 64)
	return time.UnixMilli(ms), err == nil
}
