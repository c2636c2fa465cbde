// Package notices tells people of approvals that wait for them: at once, and again when half of the
// time has passed.
package notices

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"time"

	"aob.dev/writ/bus"
	"aob.dev/writ/internal/clock"
	"aob.dev/writ/internal/durable"
	"aob.dev/writ/internal/failpoint"
	"aob.dev/writ/internal/notify"
	"aob.dev/writ/internal/visible"
)

// Approvals are those that wait.
type Approvals interface {
	// Waiting lists them, oldest first, without arguments and summary.
	Waiting() []bus.PendingApproval
	// Describe says what one does, in a sentence, and who may give it now: users by user_id, and roles.
	// The sentence is empty if it does not wait any more.
	Describe(ctx context.Context, w bus.PendingApproval) (sentence string, users, roles []string, err error)
}

// For is whose approvals a receiver is told of. Nothing named: all.
type For struct {
	Tenant string
	Users  []string // those that one of them may give
	Roles  []string // those that somebody with one of these roles may give
}

// Reaches reports whether the receiver is told of what somebody may give.
func (f For) Reaches(tenant, user string, roles []string) bool {
	return (f.Tenant == "" || f.Tenant == tenant) && f.includes([]string{user}, roles)
}

func (f For) includes(users, roles []string) bool {
	some := func(of, may []string) bool {
		return slices.ContainsFunc(of, func(x string) bool { return slices.Contains(may, x) })
	}
	return len(f.Users)+len(f.Roles) == 0 || some(f.Users, users) || some(f.Roles, roles)
}

// Notices tells one receiver. Each has a goroutine of its own: one that is slow delays no other.
//
// Crash: what was told is stored after the receiver has taken it, at most fifty notices at once. A
// crash between the two tells them again, with the same IDs, and never not at all.
type Notices struct {
	Receiver  notify.Receiver
	For       For
	Approvals Approvals
	Store     durable.Store // of what it was told
	Base      string        // URL of the console's host, without a slash at its end
	Now       func() time.Time
	Log       *slog.Logger
	// Failing is called with the error of a receiver that does not take a notice, and with nil when
	// it has taken all.
	Failing func(receiver string, err error)

	told  map[string]int     // rounds by intent_id; nil: not read yet
	later map[string]attempt // of those that were not told
}

// attempt is one that failed, or whose approval others may give.
type attempt struct {
	failures int
	next     time.Time
}

// pace is how often waiting approvals are looked for. slowest is the longest time between two
// attempts at a notice.
const (
	pace    = time.Second
	slowest = time.Minute
)

// Rounds of an approval.
const (
	atOnce = iota + 1
	atHalf
)

// Run tells until ctx ends.
func (n *Notices) Run(ctx context.Context) error {
	failing := false
	for {
		switch err := n.Look(ctx); {
		case ctx.Err() != nil:
			return nil //nolint:nilerr // ctx has ended
		case err != nil:
			if !failing {
				n.Log.WarnContext(ctx, "people are not told of an approval that waits for them; writ tries again", slog.String("receiver", n.Receiver.Name()), slog.String("error", err.Error()))
			}
			n.Failing(n.Receiver.Name(), err)
			failing = true
		case failing && !n.owes():
			n.Failing(n.Receiver.Name(), nil)
			failing = false
		}
		if clock.Sleep(ctx, pace) != nil {
			return nil //nolint:nilerr // ctx has ended
		}
	}
}

func (n *Notices) owes() bool {
	for _, a := range n.later {
		if a.failures > 0 {
			return true
		}
	}
	return false
}

// unsaved is how many notices may be sent before the document is written.
const unsaved = 50

// Look tells what is due, up to the first notice that is not taken. That one waits longer each
// time, and the next look begins with others.
func (n *Notices) Look(ctx context.Context) (err error) {
	if err := n.read(ctx); err != nil {
		return err
	}
	list := n.Approvals.Waiting()
	waits := make(map[string]bool, len(list))
	for _, w := range list {
		waits[w.IntentID] = true
	}
	maps.DeleteFunc(n.later, func(id string, _ attempt) bool { return !waits[id] })
	before := len(n.told)
	maps.DeleteFunc(n.told, func(id string, _ int) bool { return !waits[id] })
	changed := before - len(n.told)
	defer func() {
		if changed > 0 {
			err = errors.Join(err, n.write(ctx))
		}
	}()
	for _, w := range list {
		if n.For.Tenant != "" && n.For.Tenant != w.TenantID {
			continue
		}
		told, err := n.tell(ctx, w)
		if err != nil {
			return err
		}
		if told {
			changed++
		}
		if changed >= unsaved {
			if err := n.write(ctx); err != nil {
				return err
			}
			changed = 0
		}
	}
	return nil
}

// tell tells the newest round of an approval, and reports whether it did. A round that was missed is
// not made up.
func (n *Notices) tell(ctx context.Context, w bus.PendingApproval) (told bool, err error) {
	round, until, err := n.round(w)
	if err != nil {
		return false, err
	}
	again := n.later[w.IntentID]
	if round <= n.told[w.IntentID] || n.Now().Before(again.next) {
		return false, nil
	}
	summary, users, roles, err := n.Approvals.Describe(ctx, w)
	if err == nil && (summary == "" || !n.For.includes(users, roles)) {
		n.later[w.IntentID] = attempt{next: n.Now().Add(slowest)} // rights may change
		return false, nil
	}
	if err == nil {
		w.Summary = visible.Text(summary, "")
		err = n.Receiver.Send(ctx, n.message(w, round, until))
	}
	if err != nil {
		again.failures++
		again.next = n.Now().Add(min(pace<<min(again.failures, 10), slowest))
		n.later[w.IntentID] = again
		return false, err
	}
	failpoint.Hit(failpoint.NoticeSent)
	delete(n.later, w.IntentID)
	n.told[w.IntentID] = round
	return true, nil
}

func (n *Notices) round(w bus.PendingApproval) (round int, until time.Time, err error) {
	since, err := time.Parse(time.RFC3339Nano, w.PendingSince)
	if err != nil {
		return 0, until, err
	}
	if until, err = time.Parse(time.RFC3339Nano, w.Deadline); err != nil {
		return 0, until, err
	}
	if n.Now().Before(since.Add(until.Sub(since) / 2)) {
		return atOnce, until, nil
	}
	return atHalf, until, nil
}

func (n *Notices) message(w bus.PendingApproval, round int, until time.Time) notify.Message {
	title := "Waits for your approval"
	if round == atHalf {
		title = "Still waits for your approval"
	}
	m := notify.Message{
		ID: fmt.Sprintf("%s.%d", w.IntentID, round), Title: title + ": " + w.Summary,
		Text: fmt.Sprintf("Asked by %s, tenant %s. It ends at %s if nobody decides.", visible.Text(w.UserID, ""), w.TenantID, until.UTC().Format("15:04 MST, 2 January 2006")),
		Link: n.Base + "/console/approvals/" + w.IntentID,
	}
	m.Data = Notice{ID: m.ID, Round: round, Tenant: w.TenantID, IntentID: w.IntentID, User: w.UserID, Type: w.Type, Summary: w.Summary, PendingSince: w.PendingSince, Deadline: w.Deadline, URL: m.Link}
	return m
}

// Test is a message without an approval.
func Test(base string, now time.Time) notify.Message {
	id := fmt.Sprintf("test.%d", now.UnixMilli())
	return notify.Message{
		ID: id, Title: "Test of writ's notices", Text: "Approvals that wait for you will be told here. Nothing waits now because of this.",
		Link: base + "/console/approvals", Data: Notice{ID: id, Summary: "this is a test", URL: base + "/console/approvals"},
	}
}

// Notice is what a webhook gets.
type Notice struct {
	ID           string `json:"id"` // the same if it comes again
	Round        int    `json:"round"`
	Tenant       string `json:"tenant_id"`
	IntentID     string `json:"intent_id"`
	User         string `json:"user_id"` // requester
	Type         string `json:"type"`
	Summary      string `json:"summary"`
	PendingSince string `json:"held_at"`  // RFC 3339
	Deadline     string `json:"deadline"` // RFC 3339
	URL          string `json:"url"`
}

func (n *Notices) read(ctx context.Context) error {
	if n.told != nil {
		return nil
	}
	doc, err := n.Store.Get(ctx)
	if err != nil {
		return err
	}
	told := map[string]int{}
	n.later = map[string]attempt{}
	if doc != nil {
		if err := json.Unmarshal(doc, &told); err != nil {
			return fmt.Errorf("what %s was told: %w", n.Receiver.Name(), err)
		}
	}
	if told == nil { // the document was null
		told = map[string]int{}
	}
	n.told = told
	return nil
}

func (n *Notices) write(ctx context.Context) error {
	doc, err := json.Marshal(n.told)
	if err != nil {
		return err
	}
	return n.Store.Put(ctx, doc)
}
