package logs

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"aob.dev/writ/executors"
	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
)

// TestLinesHaveShares: however many intents of others have lines in memory, those of another
// tenant's intents are shown as they come.
func TestLinesHaveShares(t *testing.T) {
	w := newWorld(t)
	flood := func(from, n int) {
		for i := range n {
			w.write(int64(from+i), 1, 1, 0, textLines("theirs"), func(t *intents.Ticket, _ *executors.LogChunk, _ *string) {
				t.Actor.Tenant, t.Scope.Plan = "greedy", fmt.Sprint("plan_", i%16)
			})
		}
	}
	flood(100, writingShares.All+10)
	w.write(8, 1, 1, 0, textLines("one"))
	flood(5000, writingShares.All)
	if n := w.live.intents.Len(); n != writingShares.Tenant+1 {
		t.Errorf("lines of %d intents are in memory", n)
	}
	w.want(w.opened(catalog.LogsStream{}, ""), "one")
}

// Published lines count only of an intent that the router gave to that executor, while it may run.
func TestAcceptedLines(t *testing.T) {
	stranger, err := intents.GenerateSigner(intents.RoleRouter)
	if err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*intents.Ticket, *executors.LogChunk, *string){
		"another executor":   func(_ *intents.Ticket, _ *executors.LogChunk, by *string) { *by = "x-acme" },
		"another position":   func(_ *intents.Ticket, x *executors.LogChunk, _ *string) { x.Position++ },
		"another attempt":    func(_ *intents.Ticket, x *executors.LogChunk, _ *string) { x.Attempt++ },
		"another log":        func(t *intents.Ticket, _ *executors.LogChunk, _ *string) { t.Issuer = "writ/other" },
		"after its deadline": func(t *intents.Ticket, _ *executors.LogChunk, _ *string) { t.Deadline = t.Deadline.Add(-time.Hour) },
		"of no task":         func(t *intents.Ticket, _ *executors.LogChunk, _ *string) { t.Scope = nil },
		"of another plan":    func(t *intents.Ticket, _ *executors.LogChunk, _ *string) { t.Scope.Plan = "plan_2" },
		"of another tenant":  func(t *intents.Ticket, _ *executors.LogChunk, _ *string) { t.Actor.Tenant = "other" },
		"under a mask": func(t *intents.Ticket, _ *executors.LogChunk, _ *string) {
			t.Obligations = []intents.Obligation{{Name: "mask", Value: "/x"}}
		},
		"without a ticket": func(_ *intents.Ticket, x *executors.LogChunk, _ *string) { x.Ticket = "none" },
		"with a ticket of a key": func(t *intents.Ticket, x *executors.LogChunk, _ *string) {
			x.Ticket, _ = intents.IssueTicket(stranger, *t)
		},
	} {
		w := newWorld(t)
		w.write(8, 1, 1, 0, textLines("forged"), change)
		if got, _, _ := w.texts(w.opened(catalog.LogsStream{}, "")); len(got) != 0 {
			t.Errorf("%s: %q", name, got)
		}
	}
	w := newWorld(t)
	w.write(8, 1, 1, 0, textLines("one"))
	w.write(8, 1, 1, 2, textLines("three")) // the second was lost
	w.write(8, 1, 1, 3, textLines("four"))
	w.want(w.opened(catalog.LogsStream{}, ""), "one")
}

// TestOnceInOrder: whenever lines come, intents end, the process is restarted and a follower goes
// on with another stream, it sees each line of the record once and those of an intent in order.
// What it saw of an attempt that the record does not have came before the record's.
func TestOnceInOrder(t *testing.T) {
	lines, streams := 0, 0
	for seed := range uint64(25) {
		r := rand.New(rand.NewPCG(seed, 1))
		w := newWorld(t)
		type open struct {
			position       int64
			attempt, wrote int
			lines          []intents.Line
		}
		var list []*open
		var want, got []string
		id, cursor := w.opened(catalog.LogsStream{}, ""), ""
		read := func() {
			texts, last, _ := w.texts(id)
			if got = append(got, texts...); last != "" {
				cursor = last
			}
		}
		of := int64(0)
		for range 60 {
			switch k := r.IntN(10); {
			case k < 2 && len(list) < 4:
				of++
				o := &open{position: of, attempt: 1}
				for n := range r.IntN(5) {
					o.lines = append(o.lines, textLines(fmt.Sprintf("%d/%d", of, n))...)
				}
				list = append(list, o)
			case k < 5 && len(list) > 0:
				o := list[r.IntN(len(list))]
				if n := o.wrote + r.IntN(len(o.lines)-o.wrote+1); n > o.wrote {
					w.write(o.position, o.attempt, 1, o.wrote, o.lines[o.wrote:n])
					o.wrote = n
				}
			case k < 7 && len(list) > 0:
				i := r.IntN(len(list))
				o := list[i]
				w.record(o.position, o.attempt, 1, o.lines...)
				for _, l := range o.lines {
					want = append(want, l.Text)
				}
				list = append(list[:i], list[i+1:]...)
			case k == 7:
				id = w.opened(catalog.LogsStream{}, cursor)
				streams++
			case k == 8 && r.IntN(3) == 0:
				w.restart()
				for _, o := range list { // each is carried out again
					o.attempt, o.wrote = o.attempt+1, 0
					for n := range o.lines {
						o.lines[n].Text = fmt.Sprintf("%d/%d of attempt %d", o.position, n, o.attempt)
					}
				}
				id = w.opened(catalog.LogsStream{}, cursor)
				streams++
			default:
				read()
			}
		}
		for _, o := range list {
			w.record(o.position, o.attempt, 1, o.lines...)
			for _, l := range o.lines {
				want = append(want, l.Text)
			}
		}
		read()
		lines += len(want)
		at := map[string]int{}
		for i, text := range got {
			if _, twice := at[text]; twice {
				t.Fatalf("seed %d: %q twice in %q", seed, text, got)
			}
			at[text] = i
		}
		for i, text := range want {
			if _, there := at[text]; !there {
				t.Fatalf("seed %d: %q is missing in %q", seed, text, got)
			}
			if i > 0 && strings.Split(want[i-1], "/")[0] == strings.Split(text, "/")[0] && at[want[i-1]] > at[text] {
				t.Fatalf("seed %d: %q before %q", seed, text, want[i-1])
			}
		}
	}
	if lines < 200 || streams < 50 {
		t.Errorf("only %d lines in %d streams: the test proves little", lines, streams)
	}
}
