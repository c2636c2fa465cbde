package sessions_test

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"aob.dev/writ/executors/sessions"
	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/testing/executortest"
	"aob.dev/writ/storage"
	"aob.dev/writ/storage/sqlite"
	"aob.dev/writ/storage/views"
)

type bench struct {
	*executortest.Executor
	docs storage.Documents
	mu   sync.Mutex // guards now
	now  time.Time
}

func open(t *testing.T) *bench {
	t.Helper()
	docs, err := sqlite.OpenDocuments(t.Context(), filepath.Join(t.TempDir(), "documents.db"), storage.NewCheck(storage.DefaultDimension), 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := docs.Close(); err != nil {
			t.Error(err)
		}
	})
	b := &bench{docs: docs, now: time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)}
	b.Executor = executortest.New(t, sessions.Name, b.clock, sessions.Handlers(sessions.Config{Documents: docs, Now: b.clock}))
	return b
}

func (b *bench) clock() time.Time {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.now
}

func (b *bench) advance(d time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.now = b.now.Add(d)
}

func intent(typ string, args any) executortest.Intent {
	return executortest.Intent{Type: typ, NoScope: true, Args: args}
}

// session sends an intent that must end well.
func (b *bench) session(t *testing.T, typ string, args any) catalog.Session {
	t.Helper()
	var s catalog.Session
	b.Must(t, intent(typ, args), &s)
	return s
}

func (b *bench) turns(n int, text string) []catalog.Turn {
	out := make([]catalog.Turn, n)
	for i := range out {
		out[i] = catalog.Turn{Role: "user", Content: fmt.Sprint(text, i), Timestamp: b.clock(), IntentSummary: "asks"}
	}
	return out
}

func TestLife(t *testing.T) {
	b := open(t)
	s := b.session(t, "session.create", catalog.SessionCreate{SessionID: "s1", Agent: "manager"})
	if s.Status != "active" || s.UserID != "ana" || !s.TTL.Equal(b.clock().Add(30*time.Minute)) || s.TurnHistory == nil {
		t.Errorf("created: %+v", s)
	}
	b.advance(20 * time.Minute)
	turns := b.turns(2, "turn ")
	s = b.session(t, "session.append", catalog.SessionAppend{SessionID: "s1", Turns: turns})
	if !s.TTL.Equal(b.clock().Add(30*time.Minute)) || !s.LastActive.Equal(b.clock()) {
		t.Errorf("appending counts the time anew: %+v", s)
	}
	if diff := cmp.Diff(turns, s.TurnHistory); diff != "" {
		t.Error(diff)
	}
	state := json.RawMessage(`{"b":[1,{"x":null}],"a":"ä"}`)
	s = b.session(t, "session.update", catalog.SessionUpdate{SessionID: "s1", WorkflowState: state})
	var want, got any
	if json.Unmarshal(state, &want) != nil || json.Unmarshal(s.WorkflowState, &got) != nil || cmp.Diff(want, got) != "" {
		t.Errorf("workflow state: %s", s.WorkflowState)
	}
	s = b.session(t, "session.close", catalog.SessionClose{SessionID: "s1", Status: "COMPLETED"})
	if s.Status != "COMPLETED" || s.TTL != nil {
		t.Errorf("closed: %+v", s)
	}
	b.advance(24 * time.Hour)
	if s := b.session(t, "session.get", catalog.SessionRef{SessionID: "s1"}); s.Status != "COMPLETED" || len(s.TurnHistory) != 2 {
		t.Errorf("a closed session is kept: %+v", s)
	}
	for _, late := range []executortest.Intent{
		intent("session.append", catalog.SessionAppend{SessionID: "s1", Turns: turns}),
		intent("session.update", catalog.SessionUpdate{SessionID: "s1", WorkflowState: state}),
		intent("session.close", catalog.SessionClose{SessionID: "s1", Status: "ERROR"}),
	} {
		if r := b.Do(t, late); r.Code != intents.MalformedArgs {
			t.Errorf("%s after the end: %+v", late.Type, r)
		}
	}
	s = b.session(t, "session.resume", catalog.SessionResume{SessionID: "s2", From: "s1"})
	if s.SessionID != "s2" || s.Status != "active" || s.Agent != "manager" || len(s.TurnHistory) != 2 || s.WorkflowState == nil {
		t.Errorf("resumed: %+v", s)
	}
}

// A session whose time is over has been left; its history goes on in a new one.
func TestExpiry(t *testing.T) {
	b := open(t)
	b.session(t, "session.create", catalog.SessionCreate{SessionID: "s1", TTLMinutes: 5})
	b.session(t, "session.append", catalog.SessionAppend{SessionID: "s1", Turns: b.turns(1, "")})
	if r := b.Do(t, intent("session.resume", catalog.SessionResume{SessionID: "s2", From: "s1"})); r.Code != intents.MalformedArgs {
		t.Errorf("resumed while it lives: %+v", r)
	}
	b.advance(5 * time.Minute)
	if s := b.session(t, "session.get", catalog.SessionRef{SessionID: "s1"}); s.Status != "ABANDONED" {
		t.Errorf("%+v", s)
	}
	if r := b.Do(t, intent("session.append", catalog.SessionAppend{SessionID: "s1", Turns: b.turns(1, "")})); r.Code != intents.MalformedArgs {
		t.Errorf("%+v", r)
	}
	s := b.session(t, "session.resume", catalog.SessionResume{SessionID: "s2", From: "s1"})
	if len(s.TurnHistory) != 1 || !s.TTL.Equal(b.clock().Add(5*time.Minute)) {
		t.Errorf("%+v", s)
	}
}

// TestTurnLimit: at most 100 turns; a full session goes on under a new
// id with its newest turns.
func TestTurnLimit(t *testing.T) {
	b := open(t)
	b.session(t, "session.create", catalog.SessionCreate{SessionID: "s1"})
	for range 10 {
		b.session(t, "session.append", catalog.SessionAppend{SessionID: "s1", Turns: b.turns(10, "t")})
	}
	more := intent("session.append", catalog.SessionAppend{SessionID: "s1", Turns: b.turns(1, "over")})
	if r := b.Do(t, more); r.Code != intents.MalformedArgs || !strings.Contains(r.Reason, "full") {
		t.Errorf("%+v", r)
	}
	if s := b.session(t, "session.get", catalog.SessionRef{SessionID: "s1"}); len(s.TurnHistory) != 100 {
		t.Errorf("%d turns", len(s.TurnHistory))
	}
	s := b.session(t, "session.resume", catalog.SessionResume{SessionID: "s2", From: "s1"})
	if len(s.TurnHistory) != 50 || s.TurnHistory[49].Content != "t9" {
		t.Errorf("%d turns", len(s.TurnHistory))
	}
}

// TestApplyOnce: an intent that is dispatched again changes nothing; one that
// comes after a later one is STALE.
func TestApplyOnce(t *testing.T) {
	b := open(t)
	at := func(position int64, typ string, args any) executortest.Intent {
		in := intent(typ, args)
		in.Position = position
		return in
	}
	create := at(10, "session.create", catalog.SessionCreate{SessionID: "s1"})
	b.Must(t, create, nil)
	b.Must(t, create, nil)
	if r := b.Do(t, at(11, "session.create", catalog.SessionCreate{SessionID: "s1", Agent: "other"})); r.Code != intents.MalformedArgs {
		t.Errorf("created twice: %+v", r)
	}
	add := at(20, "session.append", catalog.SessionAppend{SessionID: "s1", Turns: b.turns(1, "")})
	for range 2 {
		var s catalog.Session
		if b.Must(t, add, &s); len(s.TurnHistory) != 1 {
			t.Errorf("%d turns", len(s.TurnHistory))
		}
	}
	if r := b.Do(t, at(15, "session.close", catalog.SessionClose{SessionID: "s1", Status: "ERROR"})); r.Code != intents.StaleWrite {
		t.Errorf("late: %+v", r)
	}
}

// Appends at once are each applied whole or refused as stale; none is lost
// without a word.
func TestAppendsAtOnce(t *testing.T) {
	b := open(t)
	b.session(t, "session.create", catalog.SessionCreate{SessionID: "s1"})
	var group sync.WaitGroup
	applied := make(chan bool, 8)
	for i := range 8 {
		in := b.Fill(intent("session.append", catalog.SessionAppend{SessionID: "s1", Turns: b.turns(2, fmt.Sprint(i))}))
		raw, err := json.Marshal(b.Sign(t, in))
		if err != nil {
			t.Fatal(err)
		}
		group.Go(func() {
			var r intents.Report
			if err := json.Unmarshal(b.Service.Handle(t.Context(), "", raw), &r); err != nil {
				t.Error(err)
			}
			if r.Code != intents.OK && r.Code != intents.StaleWrite {
				t.Errorf("%+v", r)
			}
			applied <- r.Code == intents.OK
		})
	}
	group.Wait()
	close(applied)
	n := 0
	for ok := range applied {
		if ok {
			n++
		}
	}
	s := b.session(t, "session.get", catalog.SessionRef{SessionID: "s1"})
	if n == 0 || len(s.TurnHistory) != 2*n {
		t.Errorf("%d applied, %d turns", n, len(s.TurnHistory))
	}
}

func TestSessionsArePrivate(t *testing.T) {
	b := open(t)
	b.session(t, "session.create", catalog.SessionCreate{SessionID: "s1"})
	for _, who := range []intents.Principal{{UserID: "bob", Tenant: "acme", Roles: []string{"admin"}}, {UserID: "ana", Tenant: "evil"}} {
		for typ, args := range map[string]any{
			"session.get":    catalog.SessionRef{SessionID: "s1"},
			"session.append": catalog.SessionAppend{SessionID: "s1", Turns: b.turns(1, "")},
			"session.close":  catalog.SessionClose{SessionID: "s1", Status: "ERROR"},
			"session.resume": catalog.SessionResume{SessionID: "s9", From: "s1"},
		} {
			in := intent(typ, args)
			in.Ticket.Actor = who
			if r := b.Do(t, in); r.Code != intents.NotFound {
				t.Errorf("%s by %+v: %+v", typ, who, r)
			}
		}
	}
}

func TestList(t *testing.T) {
	b := open(t)
	for i := range 5 {
		b.advance(time.Minute)
		b.session(t, "session.create", catalog.SessionCreate{SessionID: fmt.Sprint("s", i)})
	}
	other := intent("session.create", catalog.SessionCreate{SessionID: "theirs"})
	other.Ticket.Actor.UserID = "bob"
	b.Must(t, other, nil)
	b.session(t, "session.append", catalog.SessionAppend{SessionID: "s0", Turns: b.turns(1, "")})
	var got []string
	after := ""
	for pages := 0; pages == 0 || after != ""; pages++ {
		page, err := views.Sessions(t.Context(), b.docs, "acme", "ana", catalog.SessionList{Limit: 2, After: after}, b.clock())
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range page.Sessions {
			got = append(got, s.SessionID)
		}
		after = page.Cursor
		if pages > 5 {
			t.Fatal("the list does not end")
		}
	}
	if len(got) != 5 || got[len(got)-1] != "s1" {
		t.Errorf("%v", got)
	}
}

// TestSouls: a user's soul over the tenant's, member by member.
func TestSouls(t *testing.T) {
	b := open(t)
	get := func(user string) catalog.Soul {
		in := intent("soul.get", catalog.SoulGet{})
		in.Ticket.Actor.UserID = user
		var s catalog.Soul
		b.Must(t, in, &s)
		return s
	}
	if s := get("ana"); s.Persona != nil || s.UpdatedAt != nil {
		t.Errorf("none: %+v", s)
	}
	put := func(user, name, tone, policies string, position int64) intents.Report {
		in := intent("soul.put", catalog.SoulPut{UserID: user, Persona: catalog.Persona{Name: name, SystemPrompt: "You are " + name, Tone: tone}, Policies: json.RawMessage(policies)})
		in.Position = position
		return b.Do(t, in)
	}
	put("", "Writ", "calm", `{"max":1,"lang":"en"}`, 10)
	b.advance(time.Hour)
	put("ana", "Ada", "", `{"lang":"de"}`, 11)
	s := get("ana")
	want := catalog.Soul{
		UserID: "ana", Persona: &catalog.Persona{Name: "Ada", SystemPrompt: "You are Ada", Tone: "calm"},
		Policies: json.RawMessage(`{"lang":"de","max":1}`), UpdatedAt: s.UpdatedAt,
	}
	if diff := cmp.Diff(want, s); diff != "" || !s.UpdatedAt.Equal(b.clock()) {
		t.Error(diff)
	}
	if s := get("bob"); s.Persona.Name != "Writ" || s.UserID != "" {
		t.Errorf("the tenant's: %+v", s)
	}
	if r := put("", "Late", "", `{}`, 9); r.Code != intents.StaleWrite {
		t.Errorf("late: %+v", r)
	}
	evil := intent("soul.get", catalog.SoulGet{})
	evil.Ticket.Actor.Tenant = "evil"
	var theirs catalog.Soul
	if b.Must(t, evil, &theirs); theirs.Persona != nil {
		t.Errorf("another tenant's: %+v", theirs)
	}
}
