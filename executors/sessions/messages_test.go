package sessions_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
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

// forgetful is a store whose next writes land, while their answers are lost.
type forgetful struct {
	storage.Documents
	lost int
}

func (f *forgetful) answer(err error) error {
	if f.lost > 0 && err == nil {
		f.lost--
		return storage.ErrUnavailable
	}
	return err
}

func (f *forgetful) Swap(ctx context.Context, tenant, index string, expected int64, doc storage.Document) error {
	return f.answer(f.Documents.Swap(ctx, tenant, index, expected, doc))
}

func (f *forgetful) Create(ctx context.Context, tenant, index string, docs ...storage.Document) (int, error) {
	n, err := f.Documents.Create(ctx, tenant, index, docs...)
	return n, f.answer(err)
}

// storedRow is a document of agent_messages.
type storedRow struct {
	ID, Session, User, Turn, Plan, Type, Content string
	Position                                     int64
}

// rows of a session, in their order.
func (b *bench) rows(t *testing.T, session string) (out []storedRow) {
	t.Helper()
	page, err := b.docs.Search(t.Context(), "acme", storage.IndexMessages, storage.Query{Terms: map[string][]string{"session_id": {session}}, Limit: 1000})
	if err != nil {
		t.Fatal(err)
	}
	for _, doc := range page.Documents {
		var v struct {
			ID       string `json:"message_id"`
			Session  string `json:"session_id"`
			User     string `json:"user_id"`
			Turn     string `json:"turn_id"`
			Plan     string `json:"plan_id"`
			Type     string `json:"message_type"`
			Content  string `json:"content"`
			Position int64  `json:"position"`
		}
		if err := json.Unmarshal(doc.Body, &v); err != nil || v.ID != doc.ID {
			t.Fatalf("%s: %v", doc.Body, err)
		}
		out = append(out, storedRow(v))
	}
	return out
}

// TestResent: an intent whose sender was told to try again, although it had its
// effect, has it once: sent again as it was, or signed again, at another position.
func TestResent(t *testing.T) {
	b := open(t)
	f := &forgetful{Documents: b.docs}
	b.Executor = executortest.New(t, sessions.Name, b.clock, sessions.Handlers(sessions.Config{Documents: f, Now: b.clock}))
	turns := []catalog.Turn{{Role: "user", Content: "hello", Timestamp: b.clock()}, {Role: "agent", Content: "good day", Timestamp: b.clock()}}
	for _, step := range []struct {
		typ    string
		args   any
		writes int // documents of which an answer may be lost
		want   int // turns after it
	}{
		{"session.create", catalog.SessionCreate{SessionID: "s1", Agent: "manager"}, 1, 0},
		{"session.append", catalog.SessionAppend{SessionID: "s1", Turns: turns}, 2, 2},
		{"session.update", catalog.SessionUpdate{SessionID: "s1", WorkflowState: json.RawMessage(`{"page":2}`)}, 1, 2},
		{"session.close", catalog.SessionClose{SessionID: "s1", Status: "COMPLETED"}, 1, 2},
		{"session.resume", catalog.SessionResume{SessionID: "s2", From: "s1"}, 1, 2},
	} {
		in := intent(step.typ, step.args)
		in.Key = "key_of_" + step.typ
		for lost := 1; lost <= step.writes; lost++ {
			f.lost = step.writes
			if r := b.Do(t, in); r.Status != intents.Failed || !r.Retryable {
				t.Fatalf("%s: %+v", step.typ, r)
			}
			f.lost = 0
			b.advance(time.Second) // another intent_id
		}
		var s catalog.Session
		if b.Must(t, in, &s); len(s.TurnHistory) != step.want {
			t.Errorf("%s: %d turns, want %d", step.typ, len(s.TurnHistory), step.want)
		}
	}
	got := b.rows(t, "s1")
	for i := range got {
		got[i].ID, got[i].Position = "", 0
	}
	want := []storedRow{
		{Session: "s1", User: "ana", Turn: "turn_1", Plan: "plan_1", Type: "user", Content: "hello"},
		{Session: "s1", User: "ana", Turn: "turn_1", Plan: "plan_1", Type: "assistant", Content: "good day"},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

// TestRecoveredLate: an append that had its effect before a crash is done, also
// where a later one came before it was dispatched again.
func TestRecoveredLate(t *testing.T) {
	b := open(t)
	b.session(t, "session.create", catalog.SessionCreate{SessionID: "s1"})
	first := b.Fill(intent("session.append", catalog.SessionAppend{SessionID: "s1", Turns: b.turns(1, "first")}))
	b.Must(t, first, nil)
	b.session(t, "session.append", catalog.SessionAppend{SessionID: "s1", Turns: b.turns(1, "second")})
	var s catalog.Session
	first.Ticket.Attempt = 2
	if b.Must(t, first, &s); len(s.TurnHistory) != 2 {
		t.Errorf("%d turns", len(s.TurnHistory))
	}
	if got := b.rows(t, "s1"); len(got) != 2 || got[0].Position != first.Position {
		t.Errorf("%+v", got)
	}
}

// TestRowsAreTheirOwners: equal keys of two users, and equal sessions of two
// tenants, are two things.
func TestRowsAreTheirOwners(t *testing.T) {
	b := open(t)
	for _, who := range []intents.Principal{{UserID: "ana", Tenant: "acme"}, {UserID: "bob", Tenant: "acme"}, {UserID: "ana", Tenant: "evil"}} {
		session := "s_" + who.UserID
		for _, in := range []executortest.Intent{
			intent("session.create", catalog.SessionCreate{SessionID: session}),
			intent("session.append", catalog.SessionAppend{SessionID: session, Turns: b.turns(2, who.Tenant)}),
		} {
			in.Ticket.Actor, in.Key = who, "the_same"
			var s catalog.Session
			if b.Must(t, in, &s); in.Type == "session.append" && (len(s.TurnHistory) != 2 || s.TurnHistory[0].Content != who.Tenant+"0") {
				t.Errorf("%+v: %+v", who, s)
			}
		}
	}
	if ana, bob := b.rows(t, "s_ana"), b.rows(t, "s_bob"); len(ana) != 2 || len(bob) != 2 || ana[0].Content != "acme0" || bob[0].User != "bob" {
		t.Errorf("%+v %+v", ana, bob)
	}
}

// TestHistoryPages: a history is read from its end, page by page, each in the
// order in which it was written, while turns are being appended.
func TestHistoryPages(t *testing.T) {
	b := open(t)
	b.session(t, "session.create", catalog.SessionCreate{SessionID: "s1"})
	for i := range 3 {
		b.session(t, "session.append", catalog.SessionAppend{SessionID: "s1", Turns: b.turns(4, fmt.Sprint(i, "."))})
	}
	var pages []string
	for before := ""; len(pages) < 9; {
		s := b.session(t, "session.get", catalog.SessionRef{SessionID: "s1", Limit: 5, Before: before})
		var said []string
		for _, turn := range s.TurnHistory {
			said = append(said, turn.Content)
		}
		pages = append(pages, strings.Join(said, " "))
		if before = s.Cursor; before == "" {
			break
		}
		b.session(t, "session.append", catalog.SessionAppend{SessionID: "s1", Turns: b.turns(1, "later")})
	}
	want := []string{"1.3 2.0 2.1 2.2 2.3", "0.2 0.3 1.0 1.1 1.2", "0.0 0.1"}
	if d := cmp.Diff(want, pages); d != "" {
		t.Error(d)
	}
	if r := b.Do(t, intent("session.get", catalog.SessionRef{SessionID: "s1", Before: "m_none"})); r.Code != intents.MalformedArgs {
		t.Errorf("%+v", r)
	}
	b.session(t, "session.close", catalog.SessionClose{SessionID: "s1", Status: "ERROR"})
	if s := b.session(t, "session.resume", catalog.SessionResume{SessionID: "s2", From: "s1"}); s.ResumedFrom != "s1" || s.Cursor != "" {
		t.Errorf("%+v", s)
	}
}

// TestUsageOfAnAnswer: the model usage of a turn is stored with the agent's message, and with
// nothing else.
func TestUsageOfAnAnswer(t *testing.T) {
	b := open(t)
	o := b.turn("turn:t1", "t1", "How many?", "Ten.")
	args := o.Args.(catalog.SessionAppend)
	args.Used = &catalog.Usage{Agent: "general", Model: "openai:" + strings.Repeat("m", 110), Calls: 2, InputTokens: 900, OutputTokens: 60, LatencyMS: 400}
	o.Args = args
	b.Must(t, o, &catalog.Session{})
	page, err := b.docs.Search(t.Context(), "acme", storage.IndexMessages, storage.Query{Limit: 10})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, doc := range page.Documents {
		var row struct {
			Type   string `json:"message_type"`
			Agent  string `json:"agent_name"`
			Model  string `json:"model"`
			Input  *int   `json:"input_tokens"`
			Output *int   `json:"output_tokens"`
			Took   *int   `json:"latency_ms"`
		}
		if err := json.Unmarshal(doc.Body, &row); err != nil {
			t.Fatal(err)
		}
		if row.Input == nil {
			got = append(got, row.Type+row.Agent+row.Model)
			continue
		}
		got = append(got, fmt.Sprint(row.Type, " ", row.Agent, " ", len(row.Model), " ", *row.Input, " ", *row.Output, " ", *row.Took))
	}
	slices.Sort(got)
	if d := cmp.Diff([]string{"assistant general 100 900 60 400", "user"}, got); d != "" {
		t.Error(d)
	}
}
