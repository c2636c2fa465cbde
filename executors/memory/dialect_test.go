package memory_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/testing/executortest"
	"aob.dev/writ/storage"
)

// asks is a query of an agent's task, for a user.
func asks(user, mode, text string) executortest.Intent {
	in := executortest.Intent{Type: "memory.query", Args: catalog.MemoryQuery{Mode: mode, Text: text, TopK: 50}}
	in.Ticket.Actor = intents.Principal{UserID: user, Tenant: "acme"}
	in.Ticket.Scope = task("task_9", 1)
	return in
}

func (b *bench) runQuery(t *testing.T, in executortest.Intent) (out catalog.MemoryQueryResult) {
	t.Helper()
	b.Must(t, in, &out)
	return out
}

func keys(hits []catalog.MemoryHit) (out []string) {
	for _, h := range hits {
		out = append(out, h.Key)
	}
	return out
}

// moment writes a moment of ana's, or of another user's.
func (b *bench) moment(t *testing.T, user, label, text string, edges ...catalog.Edge) {
	t.Helper()
	raw, err := json.Marshal(catalog.Moment{Text: text, Edges: edges})
	if err != nil {
		t.Fatal(err)
	}
	in := executortest.Intent{Type: "write_memory", NoScope: true, Args: catalog.WriteMemory{Label: label, Scope: catalog.ScopeMoment, Data: raw}}
	in.Ticket.Actor = intents.Principal{UserID: user, Tenant: "acme"}
	b.Must(t, in, nil)
}

func edge(from, to string) catalog.Edge {
	return catalog.Edge{From: "sess_1:" + from, To: "sess_1:" + to, Kind: "explains", Weight: 0.5}
}

// writeMessage writes a row of agent_messages.
func (b *bench) writeMessage(t *testing.T, id, user, typ, content string) {
	t.Helper()
	body := fmt.Sprintf(`{"message_id":%q,"tenant_id":"acme","user_id":%q,"session_id":"sess_1","message_type":%q,"content":%q,"created_at":"2026-11-20T09:00:00Z"}`, id, user, typ, content)
	if _, err := b.docs.Create(t.Context(), "acme", storage.IndexMessages, storage.Document{ID: id, Position: 1, Body: json.RawMessage(body)}); err != nil {
		t.Fatal(err)
	}
}

// recalled is a bench with memories, moments and messages of two users.
func recalled(t *testing.T, b *bench) *bench {
	t.Helper()
	b.Must(t, write(task("task_1", 1), "outlets", rows), nil)
	b.Must(t, scoped(write(task("task_1", 1), "liked", rows), "user"), nil)
	b.moment(t, "ana", "trip", "A trip to the harbour.", edge("trip", "boat"))
	b.moment(t, "ana", "boat", "The boat is blue.")
	b.moment(t, "ana", "paint", "Blue paint was bought.", edge("paint", "boat"))
	b.moment(t, "ana", "lunch", "Fish for lunch.")
	b.moment(t, "ben", "boat", "Ben has a boat.", edge("boat", "trip"))
	b.writeMessage(t, "m_1", "ana", "user", "Where is the boat?")
	b.writeMessage(t, "m_2", "ben", "user", "My boat leaks.")
	b.writeMessage(t, "m_3", "ana", "tool_response", "boat boat boat")
	return b
}

// TestLookup finds memories, moments and messages of the user alone.
func TestLookup(t *testing.T) {
	b := recalled(t, open(t))
	for key, want := range map[string]string{
		"acme:sess_1:task_1:outlets": rows, "sess_1:boat": `{"kind":"moment","text":"The boat is blue."}`, "m_1": `"Where is the boat?"`,
	} {
		if got := b.runQuery(t, asks("ana", "LOOKUP", key)); got.ReadMemoryResult == nil || got.Key != key || string(got.Data) != want {
			t.Errorf("%s: %+v", key, got)
		}
	}
	for _, in := range []executortest.Intent{asks("ana", "LOOKUP", "m_2"), asks("ben", "LOOKUP", "sess_1:trip"), asks("ben", "LOOKUP", "acme:sess_1:task_1:outlets"), asks("ana", "LOOKUP", "m_9")} {
		if r := b.Do(t, in); r.Code != intents.NotFound {
			t.Errorf("%+v: %+v", in.Args, r)
		}
	}
	elsewhere := asks("ana", "LOOKUP", "sess_1:boat")
	elsewhere.Ticket.Actor.Tenant = "other"
	if r := b.Do(t, elsewhere); r.Code != intents.NotFound {
		t.Errorf("of another tenant: %+v", r)
	}
}

// TestSearchInMode finds what was remembered and said, by words, and nothing of the
// machinery. Without a mode a task searches its own alone.
func TestSearchInMode(t *testing.T) {
	b := recalled(t, open(t))
	for mode, text := range map[string]string{"SEARCH": "boat score", "FUZZY": "baot scroe"} {
		got := b.runQuery(t, asks("ana", mode, text))
		want := map[string]bool{"acme:sess_1:task_1:outlets": true, "acme:sess_1:task_1:liked": true, "sess_1:boat": true, "m_1": true}
		for _, k := range keys(got.Hits) {
			if !want[k] {
				t.Errorf("%s finds %s", mode, k)
			}
			delete(want, k)
		}
		if len(want) != 0 || got.By != catalog.ByWords {
			t.Errorf("%s by %s misses %v", mode, got.By, want)
		}
	}
	if got := b.runQuery(t, asks("ana", "", "boat score")); len(got.Hits) != 0 {
		t.Errorf("a task without a mode: %+v", got.Hits)
	}
}

// TestTraverse goes along edges in both directions, and not to moments of others.
func TestTraverse(t *testing.T) {
	b := recalled(t, open(t))
	if d := cmp.Diff([]string{"sess_1:trip", "sess_1:boat", "sess_1:paint"}, keys(b.runQuery(t, asks("ana", "TRAVERSE", "sess_1:trip")).Hits)); d != "" {
		t.Error(d)
	}
	if got := b.runQuery(t, asks("ana", "TRAVERSE", "sess_1:nothing")); len(got.Hits) != 0 || got.By != catalog.ByEdges {
		t.Errorf("%+v", got)
	}
	b.moment(t, "ana", "trip", "The trip was called off.")
	if d := cmp.Diff([]string{"sess_1:trip"}, keys(b.runQuery(t, asks("ana", "TRAVERSE", "sess_1:trip")).Hits)); d != "" {
		t.Errorf("a moment that was replaced: %s", d)
	}
}

// TestSQL: a SELECT sees the user's own rows and nothing else. Whatever else it is, it has
// no effect, and ends.
func TestSQL(t *testing.T) {
	b := recalled(t, open(t))
	got := b.runQuery(t, asks("ana", "SQL", "SELECT (SELECT count(*) FROM memory) AS memories, (SELECT count(*) FROM moments) AS moments, group_concat(content) AS said FROM messages WHERE message_type = 'user' -- all"))
	if d := cmp.Diff([]map[string]any{{"memories": 1.0, "moments": 4.0, "said": "Where is the boat?"}}, got.Rows); d != "" {
		t.Error(d)
	}
	if got := b.runQuery(t, asks("ana", "SQL", "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 500) SELECT i FROM n;")); len(got.Rows) != 100 {
		t.Errorf("%d rows", len(got.Rows))
	}
	dir := t.TempDir()
	for _, statement := range []string{
		"SELECT * FROM documents", "SELECT 1; DROP TABLE messages", "DELETE FROM messages", "PRAGMA database_list", "ATTACH '" + dir + "/a' AS a",
		"SELECT 1) LIMIT 1; VACUUM INTO '" + dir + "/b' --", "VACUUM INTO '" + dir + "/c'", "SELECT load_extension('x')", "SELECT zeroblob(100000000)", "nonsense",
		"WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n",
		"WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT hex(zeroblob(400000)) FROM n",
	} {
		if r := b.Do(t, asks("ana", "SQL", statement)); r.Code != intents.MalformedArgs {
			t.Errorf("%s: %+v", statement, r)
		}
	}
	if left, err := filepath.Glob(dir + "/*"); err != nil || len(left) != 0 {
		t.Errorf("files %v, %v", left, err)
	}
	if _, err := os.Stat(":memory:"); err == nil {
		t.Error("a file was made")
	}
}

// TestSQLOfPostgreSQL: LEFT and casts are as there, and nothing else changes.
func TestSQLOfPostgreSQL(t *testing.T) {
	b := recalled(t, open(t))
	var columns []string
	want := map[string]any{}
	for expression, value := range map[string]any{
		"LEFT(content, 9)": "Where is ", "left(content, -5)||'::int'": "Where is the ::int", "LEFT(NULL, 1)": nil, "left('añb', 2)": "añ",
		"AVG(2.5)::int": 3.0, "sum(length(content)) :: integer": 18.0, "m.content::varchar": "Where is the boat?", "('1' || 2)::int::text || '::x'": "12::x",
		"created_at::date": "2026-11-20", "(1 + 0.5::float)::float": 1.5, "'a::int' || \"content\"::text": "a::intWhere is the boat?", "1 /* ::int */": 1.0,
		"abs((0 - 2)::int) + 1::int": 3.0, "('{\"a\":\"7\"}'->>'a')::int": 7.0,
	} {
		name := fmt.Sprintf("x%d", len(columns))
		columns, want[name] = append(columns, expression+" AS "+name), value
	}
	got := b.runQuery(t, asks("ana", "SQL", "SELECT "+strings.Join(columns, ", ")+" FROM messages m WHERE message_type = 'user' -- ::int"))
	if d := cmp.Diff([]map[string]any{want}, got.Rows); d != "" {
		t.Errorf("%s: %s", columns, d)
	}
	for _, expression := range []string{"::int", "1::", "1::money", "(1)::int(2)", "'{}'->>'a'::int", ")::int", "CASE WHEN 1 THEN 2 END::int", "LEFT(content, 'a')", "1::int; DELETE FROM messages", "'a::int"} {
		if r := b.Do(t, asks("ana", "SQL", "SELECT "+expression+" AS x FROM messages")); r.Code != intents.MalformedArgs {
			t.Errorf("%s: %+v", expression, r)
		}
	}
}

// TestSQLOfAgents: a user's statement sees the agents that are in force, the built-in ones too: a tenant's hides that
// of the system. An agent's statement sees none.
func TestSQLOfAgents(t *testing.T) {
	b := open(t)
	for i, r := range []struct{ tenant, name, kind, body string }{
		{"acme", "desk", "agent", "Ours."}, {"system", "desk", "agent", "Theirs."}, {"system", "shop", "agent", "Sells."}, {"acme", "old", "gone", "Was."}, {"acme", "flow", "workflow", "Runs."}, {"other", "spy", "agent", "Looks."},
	} {
		body := fmt.Sprintf(`{"name":%q,"tenant_id":%q,"kind":%q,"version":1,"content":%q,"json_schema":{"limits":{"request_limit":%d}},"created_at":"2026-11-20T09:00:00Z"}`, r.name, r.tenant, r.kind, r.body, i)
		if _, err := b.docs.Create(t.Context(), r.tenant, storage.IndexSchemas, storage.Document{ID: r.name, Position: 1, Body: json.RawMessage(body)}); err != nil {
			t.Fatal(err)
		}
	}
	in := asks("ana", "SQL", "SELECT name, content, json_schema->>'temperature' AS warm, json_schema->>'$.limits.request_limit' AS most FROM schemas ORDER BY name")
	if r := b.Do(t, in); r.Code != intents.MalformedArgs || !strings.Contains(r.Reason, "no such table: schemas") {
		t.Errorf("an agent: %+v", r)
	}
	in.NoScope, in.Ticket.Scope = true, nil
	want := []map[string]any{
		{"name": "desk", "content": "Ours.", "warm": nil, "most": 0.0}, {"name": "dreamer", "content": "You dream.", "warm": 0.7, "most": nil}, {"name": "shop", "content": "Sells.", "warm": nil, "most": 2.0},
	}
	if d := cmp.Diff(want, b.runQuery(t, in).Rows); d != "" {
		t.Error(d)
	}
}

// TestSQLBombs: a statement that would take hours or all memory, in one call of a function that
// SQLite does not look up from too, is ended, and others go on.
func TestSQLBombs(t *testing.T) {
	b := recalled(t, open(t))
	for name, statement := range map[string]string{
		"like":    "SELECT hex(zeroblob(500000)) LIKE '" + strings.Repeat("%0", 120) + "1'",
		"glob":    "SELECT hex(zeroblob(500000)) GLOB '" + strings.Repeat("*0", 120) + "1'",
		"pattern": "SELECT '' LIKE '" + strings.Repeat("%a", 200) + "'",
		"replace": "WITH s(t) AS (SELECT hex(zeroblob(500000))) SELECT replace(t, substr(t, 1, 400000) || '1', '') FROM s",
		"sorting": "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT hex(randomblob(1000)) AS t FROM n ORDER BY t",
		"printf":  "SELECT printf('%.*c', 2000000, 'x')",
	} {
		if r := b.Do(t, asks("ana", "SQL", statement)); r.Code != intents.MalformedArgs && r.Code != intents.OK {
			t.Errorf("%s: %+v", name, r)
		}
		if got := b.runQuery(t, asks("ben", "SQL", "SELECT 1 AS n")); len(got.Rows) != 1 {
			t.Errorf("after %s: %+v", name, got)
		}
	}
}

// TestSQLCountsAll: a statement sees all rows of the user. Where there are too many, it says so.
func TestSQLCountsAll(t *testing.T) {
	b := open(t)
	put := func(from, to int) {
		t.Helper()
		var docs []storage.Document
		for i := from; i < to; i++ {
			id := fmt.Sprintf("m_%06d", i)
			docs = append(docs, storage.Document{ID: id, Position: 1, Body: fmt.Appendf(nil,
				`{"message_id":%q,"tenant_id":"acme","user_id":"ana","session_id":"sess_1","message_type":"user","content":"x","created_at":"2026-11-20T09:00:00Z"}`, id)})
		}
		if _, err := b.docs.Create(t.Context(), "acme", storage.IndexMessages, docs...); err != nil {
			t.Fatal(err)
		}
	}
	put(0, 2500)
	count := asks("ana", "SQL", "SELECT count(*) AS n FROM messages")
	if got := b.runQuery(t, count); len(got.Rows) != 1 || got.Rows[0]["n"] != 2500.0 || got.Reason != "" {
		t.Errorf("%+v", got)
	}
	put(2500, 10_500)
	if got := b.runQuery(t, count); len(got.Rows) != 1 || got.Rows[0]["n"] != 10_000.0 || !strings.Contains(got.Reason, "only the newest are counted of messages") {
		t.Errorf("%+v", got)
	}
}

// TestMomentsRefused: tasks write none, and data that is no moment is none.
func TestMomentsRefused(t *testing.T) {
	b := open(t)
	moment := func(label, data string) executortest.Intent {
		return executortest.Intent{Type: "write_memory", NoScope: true, Args: catalog.WriteMemory{Label: label, Scope: catalog.ScopeMoment, Data: json.RawMessage(data)}}
	}
	list := []executortest.Intent{
		scoped(write(task("task_1", 1), "trip", `{"text":"A trip."}`), catalog.ScopeMoment),
		moment("trip", `{}`), moment("trip", `"A trip."`), moment("trip", `{"text":"A trip.","owner":"ben"}`),
		moment("trip", `{"text":"`+strings.Repeat("a", 17<<10)+`"}`),
		{Type: "write_memory", NoScope: true, Args: catalog.WriteMemory{Label: "trip", Data: json.RawMessage(`1`)}},
	}
	for _, in := range list {
		if r := b.Do(t, in); r.Code != intents.MalformedArgs {
			t.Errorf("%+v: %+v", in.Args, r)
		}
	}
}
