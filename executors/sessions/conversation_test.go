package sessions_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"aob.dev/writ/executors/sessions"
	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/testing/executortest"
	"aob.dev/writ/storage"
)

// turn is the intent that appends a turn to a conversation under a key.
func (b *bench) turn(key, id, question, answer string) executortest.Intent {
	o := intent("session.append", catalog.SessionAppend{SessionID: "s1", Key: key, Turns: []catalog.Turn{
		{Role: "user", Content: question, Timestamp: b.clock()}, {Role: "agent", Content: answer, Timestamp: b.clock()},
	}})
	o.Context.TurnID = id
	return o
}

func (b *bench) recent(t *testing.T, tokens int) []string {
	t.Helper()
	var out []string
	for _, m := range b.session(t, "session.get", catalog.SessionRef{SessionID: "s1", TokenBudget: tokens}).TurnHistory {
		out = append(out, m.Role+": "+m.Content)
	}
	return out
}

func contents(s catalog.Session) []string {
	out := []string{}
	for _, m := range s.TurnHistory {
		out = append(out, m.Content)
	}
	return out
}

// TestConversation: a session begins with its first turn, and a hold's turn gets its
// answer later.
func TestConversation(t *testing.T) {
	b := open(t)
	if s := b.session(t, "session.get", catalog.SessionRef{SessionID: "s1", TokenBudget: 100}); s.Status != "active" || len(s.TurnHistory) != 0 {
		t.Errorf("a session that is not there: %+v", s)
	}
	b.Must(t, b.turn("turn:t1:held", "t1", "Close T-2", "It waits."), nil)
	b.Must(t, b.turn("turn:t1", "t1", "Close T-2", "Closed."), nil)
	b.Must(t, b.turn("turn:t2", "t2", "And T-3?", "Closed, too."), nil)
	want := []string{"user: Close T-2", "agent: It waits.", "agent: Closed.", "user: And T-3?", "agent: Closed, too."}
	if d := cmp.Diff(want, b.recent(t, 100)); d != "" {
		t.Error(d)
	}
	b.advance(2 * time.Hour) // it is too old, but nobody has closed it
	if d := cmp.Diff(want, b.recent(t, 100)); d != "" {
		t.Error(d)
	}
	b.Must(t, b.turn("turn:t3", "t3", "Hello again", "Hello."), nil)
	if got := b.recent(t, 100); len(got) != 7 {
		t.Errorf("%q", got)
	}
	b.session(t, "session.close", catalog.SessionClose{SessionID: "s1", Status: "COMPLETED"})
	if r := b.Do(t, b.turn("turn:t4", "t4", "x", "y")); r.Code != intents.MalformedArgs {
		t.Errorf("a turn in a closed session: %+v", r)
	}
	if s := b.session(t, "session.get", catalog.SessionRef{SessionID: "s1", TokenBudget: 100}); s.Status != "COMPLETED" {
		t.Errorf("%+v", s)
	}
	other := b.turn("turn:t5", "t5", "Whose is it?", "Mine.")
	other.Ticket.Actor.UserID = "ben"
	var s catalog.Session
	if b.Must(t, other, &s); s.UserID != "ben" || s.Status != "active" || len(s.TurnHistory) != 2 {
		t.Errorf("a session of another user with the same id: %+v", s)
	}
}

// rowless is a store that goes away before rows are written.
type rowless struct{ storage.Documents }

func (rowless) Create(context.Context, string, string, ...storage.Document) (int, error) {
	return 0, storage.ErrUnavailable
}

// TestTurnStands: what comes first under a key stands, is the answer to what comes later,
// and is what the rows say, though a crash came before they were written.
func TestTurnStands(t *testing.T) {
	b := open(t)
	b.Executor = executortest.New(t, sessions.Name, b.clock, sessions.Handlers(sessions.Config{Documents: rowless{b.docs}, Now: b.clock}))
	if r := b.Do(t, b.turn("turn:t1", "t1", "How many?", "Ten.")); r.Status != intents.Failed || !r.Retryable || len(b.rows(t, "s1")) != 0 {
		t.Fatalf("%+v", r)
	}
	b.Executor = executortest.New(t, sessions.Name, b.clock, sessions.Handlers(sessions.Config{Documents: b.docs, Now: b.clock}))
	var s catalog.Session
	b.Must(t, b.turn("turn:t1", "t1", "How many?", "About ten."), &s)
	if d := cmp.Diff([]string{"How many?", "Ten."}, contents(s)); d != "" {
		t.Error(d)
	}
	b.Must(t, b.turn("turn:t2", "t2", "Which?", "These."), &s)
	if d := cmp.Diff([]string{"Which?", "These."}, contents(s)); d != "" {
		t.Errorf("the answer is the turn alone: %s", d)
	}
	var rows []string
	for _, r := range b.rows(t, "s1") {
		rows = append(rows, r.Turn+" "+r.Type+" "+r.Content)
	}
	if d := cmp.Diff([]string{"t1 user How many?", "t1 assistant Ten.", "t2 user Which?", "t2 assistant These."}, rows); d != "" {
		t.Error(d)
	}
}

// TestTokenBudget: the newest messages come whole, older answers as the names of their
// rows, all within the budget.
func TestTokenBudget(t *testing.T) {
	b := open(t)
	for i := range 70 {
		id := string(rune('A'+i/26)) + string(rune('a'+i%26))
		b.Must(t, b.turn("turn:"+id, id, "Question "+id, "Answer "+id+" "+strings.Repeat("x", 200)), nil)
	}
	if all := b.session(t, "session.get", catalog.SessionRef{SessionID: "s1"}); len(all.TurnHistory) != sessions.MaxTurns {
		t.Errorf("%d messages are kept", len(all.TurnHistory))
	}
	const tokens = 1000
	got, size := b.recent(t, tokens), 0
	named, whole := 0, 0
	ids := map[string]bool{}
	for _, r := range b.rows(t, "s1") {
		ids[r.ID] = true
	}
	for _, text := range got {
		size += len(text)
		if strings.HasPrefix(text, "agent: [Earlier: Answer ") {
			named++
			if _, id, _ := strings.Cut(strings.TrimSuffix(text, "]"), "→ REM LOOKUP "); !ids[id] || whole > 0 {
				t.Errorf("%q", text)
			}
			continue
		}
		whole++
	}
	if size > tokens*4+20*len(got) || named == 0 || whole < 20 || !strings.HasPrefix(got[len(got)-1], "agent: Answer Cr ") {
		t.Errorf("%d bytes, %d named, %d whole: %q", size, named, whole, got)
	}
	if strings.Contains(strings.Join(got, "\n"), "Answer Aa") {
		t.Error("the first turn is still told")
	}
}

// TestPromptContents: memories and observations reach it, thoughts do not; the newest
// moments of the session come first, and in place of the memories that they are from.
// An older answer is named by the moment that sums it up.
func TestPromptContents(t *testing.T) {
	b := open(t)
	for i, key := range []string{"s1:chunk_1", "s1:chunk_2", "s1:chunk_3", "s2:chunk_4"} {
		session, _, _ := strings.Cut(key, ":")
		body := fmt.Sprintf(`{"id":"ana/%s","tenant_id":"acme","user_id":"ana","session_id":%q,"key":%q,"kind":"session_chunk","text":"Sum %d.","created_at":"2026-11-20T09:00:0%dZ"}`, key, session, key, i+1, i)
		if err := b.docs.Put(t.Context(), "acme", storage.IndexMoments, storage.Document{ID: "ana/" + key, Position: 1, Body: json.RawMessage(body)}); err != nil {
			t.Fatal(err)
		}
	}
	b.Must(t, b.turn("turn:t1", "t1", "Where is it?", "By the river. "+strings.Repeat("x", 5000)), nil)
	b.advance(time.Minute)
	for i, key := range []string{"s1:chunk_1", "s1:chunk_3"} {
		b.Must(t, intent("session.append", catalog.SessionAppend{SessionID: "s1", Key: fmt.Sprintf("dream:%d", i), Turns: []catalog.Turn{
			{Role: catalog.Memory, Content: fmt.Sprintf("Memory %d.", i+1), Timestamp: b.clock(), IntentSummary: key},
			{Role: catalog.Observation, Content: fmt.Sprintf("Rain %d.", i+1), Timestamp: b.clock()},
			{Role: catalog.Think, Content: "Hm.", Timestamp: b.clock()},
		}}), nil)
	}
	var got []string
	for _, m := range b.session(t, "session.get", catalog.SessionRef{SessionID: "s1", TokenBudget: 1000, Moments: 2}).TurnHistory {
		got = append(got, m.Role+": "+m.Content)
	}
	want := []string{
		"memory: [Session context] s1:chunk_2: Sum 2.", "memory: [Session context] s1:chunk_3: Sum 3.",
		"agent: [Earlier: By the river. " + strings.Repeat("x", 46) + "… → REM LOOKUP s1:chunk_1]",
		"memory: Memory 1.", "observation: Rain 1.", "observation: Rain 2.",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	got = b.recent(t, 100)
	if d := cmp.Diff([]string{"memory: Memory 1.", "observation: Rain 1.", "memory: Memory 2.", "observation: Rain 2."}, got); d != "" {
		t.Error(d)
	}
	if got = b.recent(t, 2000); len(got) != 6 {
		t.Errorf("%q", got)
	}
	var types []string
	for _, r := range b.rows(t, "s1") {
		types = append(types, r.Type)
	}
	if d := cmp.Diff([]string{"user", "assistant", "memory", "observation", "think", "memory", "observation", "think"}, types); d != "" {
		t.Error(d)
	}
}
