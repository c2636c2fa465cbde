package e2e

import (
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestRedTeamBombs: no query of one tenant, several at once, makes a node unready, keeps others
// from theirs or brings back much.
func TestRedTeamBombs(t *testing.T) {
	t.Parallel()
	w := newRedWorld(t)
	w.addTenant("calm") // the tests beside this one have statements of tenant default
	w.addTenant("bombing")
	ana, eve := w.addPerson("calm", "ana", "user"), w.addPerson("bombing", "eve", "user")
	for _, who := range []person{ana, eve} {
		w.knock(who, http.MethodPost, "/agent/run", map[string]string{"agent": "general", "message": strings.Repeat("a", 5000)})
	}
	// Beside "recursive", those that use all the time of a processor that they get: in a campaign.
	endless := []string{"recursive in a read", "cross join", "json_each", "sorting", "a window"}
	long, deep := strings.Repeat("%a", 2000), strings.Repeat("(", 5000)
	for name, query := range map[string]string{
		"LIKE":                `SELECT * FROM messages WHERE content LIKE '` + long + `b'`,
		"GLOB":                `SELECT * FROM messages WHERE content GLOB '` + strings.ReplaceAll(long, "%", "*") + `b'`,
		"instr":               `SELECT instr(hex(zeroblob(100000000)), 'x') FROM messages`,
		"replace":             `SELECT length(replace(replace(hex(zeroblob(1000)), '0', hex(zeroblob(10000))), '0', hex(zeroblob(10000)))) FROM messages`,
		"zeroblob":            `SELECT zeroblob(1000000000) FROM messages`,
		"randomblob":          `SELECT hex(randomblob(500000000)) FROM messages`,
		"printf":              `SELECT printf('%1000000000d', 1) FROM messages`,
		"format":              `SELECT format('%.*c', 1000000000, 'x') FROM messages`,
		"recursive":           `WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n+1 FROM c) SELECT count(*) FROM c`,
		"recursive in a read": `SELECT (WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n+1 FROM c) SELECT max(n) FROM c) FROM messages`,
		"group_concat":        `SELECT group_concat(content || content || content) FROM messages`,
		"cross join":          `SELECT count(*) FROM messages a, messages b, messages c, messages d, messages e, messages f, messages g, messages h, messages i, messages j, messages k`,
		"generate_series":     `SELECT count(*) FROM generate_series(1, 1000000000000)`,
		"nesting":             `SELECT ` + deep + `1` + strings.ReplaceAll(deep, "(", ")") + ` FROM messages`,
		"json":                `SELECT json_extract('` + strings.Repeat("[", 2000) + strings.Repeat("]", 2000) + `', '$') FROM messages`,
		"json objects":        `SELECT json_group_array(json_object(content, hex(zeroblob(1000000)))) FROM messages`,
		"json_each":           `SELECT count(*) FROM json_each('[` + strings.Repeat("1,", 2000) + `1]') a, json_each('[` + strings.Repeat("1,", 2000) + `1]') b, json_each('[` + strings.Repeat("1,", 2000) + `1]') c`,
		"quote":               `SELECT quote(quote(quote(zeroblob(200000000)))) FROM messages`,
		"hex":                 `SELECT hex(hex(hex(hex(hex(zeroblob(10000000)))))) FROM messages`,
		"char":                `SELECT replace(hex(zeroblob(10000)), '0', char(1114111, 1114111, 1114111, 1114111)) FROM messages`,
		"sorting":             `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT hex(randomblob(1000)) AS t FROM n ORDER BY t`,
		"a window":            `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 10000000) SELECT sum(i) OVER (ORDER BY i ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING) FROM n`,
		"union":               `SELECT content FROM messages` + strings.Repeat(` UNION ALL SELECT content FROM messages`, 400),
		"many columns":        `SELECT ` + strings.Repeat("content,", 5000) + `content FROM messages`,
		"regexp":              `SELECT * FROM messages WHERE content REGEXP '(a+)+b'`,
	} {
		if slices.Contains(endless, name) && os.Getenv("WRIT_CAMPAIGN") == "" {
			continue
		}
		attack(t, attempt{"a query with " + name, func() string {
			const atOnce = 3
			answers := make(chan string, atOnce)
			for range atOnce {
				go func() {
					text := "no answer"
					defer func() { answers <- text }()
					_, _, text = w.knock(eve, http.MethodPost, "/query/", map[string]string{"mode": "SQL", "query": query})
				}()
			}
			through := ""
			if status, _, text := w.knock(person{}, http.MethodGet, "/readyz", nil); status != http.StatusOK {
				through = "not ready: " + text
			}
			if status, _, text := w.knock(ana, http.MethodPost, "/query/", map[string]string{"mode": "SQL", "query": "SELECT content FROM messages LIMIT 1"}); status != http.StatusOK || !strings.Contains(text, "rows") {
				through = "another tenant waits: " + text
			}
			for range atOnce {
				if text := <-answers; text == "no answer" || len(text) > 4<<20 {
					through = "its answer: " + text[:min(len(text), 100)]
				}
			}
			return through
		}})
	}
}

// TestRedTeamStatements: no statement changes anything, writes or reads a file, or loads a program.
func TestRedTeamStatements(t *testing.T) {
	t.Parallel()
	w := newRedWorld(t)
	w.addTenant("stating")
	ana := w.addPerson("stating", "ana", "user")
	w.knock(ana, http.MethodPost, "/agent/run", map[string]string{"agent": "general", "message": canary})
	ask := func(statement string) (int, string) {
		status, _, text := w.knock(ana, http.MethodPost, "/query/", map[string]string{"mode": "SQL", "query": statement})
		return status, text
	}
	const count = "SELECT count(*) AS n, group_concat(content) AS c FROM messages"
	_, before := ask(count)
	if !strings.Contains(before, canary) {
		t.Fatalf("nothing is read, the attempts show nothing: %s", before)
	}
	dir := t.TempDir()
	to, from := filepath.Join(dir, "out"), filepath.Join(dir, "in")
	if err := os.WriteFile(from, []byte("tangerine"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, statement := range []string{
		"DELETE FROM messages", "UPDATE messages SET content = 'x'", "DROP TABLE messages", "INSERT INTO messages(content) VALUES ('x')", "CREATE TABLE x(a)", "ALTER TABLE messages RENAME TO x", "SELECT 1; DELETE FROM messages", "BEGIN; DELETE FROM messages; COMMIT", "/* */ DELETE FROM messages", "-- a\nDELETE FROM messages", "WITH x AS (SELECT 1) DELETE FROM messages",
		"EXPLAIN DELETE FROM messages", "REPLACE INTO messages(content) VALUES ('x')", "VACUUM INTO '" + to + "'", "ATTACH DATABASE '" + to + "' AS x", "ATTACH '" + from + "' AS x; SELECT * FROM x.sqlite_master", "PRAGMA writable_schema = 1", "PRAGMA journal_mode = DELETE", "PRAGMA temp_store_directory = '" + dir + "'", "PRAGMA database_list", "SELECT * FROM pragma_database_list", "SELECT load_extension('" + from + "')",
		"SELECT writefile('" + to + "', 'x')", "SELECT readfile('" + from + "') AS c", "SELECT edit('" + from + "')", "SELECT fts3_tokenizer('simple', x'4141414141414141')", "CREATE VIRTUAL TABLE x USING csv(filename='" + from + "')", "SELECT * FROM fsdir('" + dir + "')", "SELECT * FROM dbstat", "SELECT * FROM sqlite_dbpage", "SELECT zipfile('a', 'b')", "SELECT sqlite_compileoption_used('X'); DROP TABLE messages", "REINDEX", "ANALYZE", "SAVEPOINT a",
	} {
		attack(t, attempt{statement, func() string {
			status, text := ask(statement)
			if status >= http.StatusInternalServerError && status != http.StatusServiceUnavailable {
				return text
			}
			if strings.Contains(text, "tangerine") || strings.Contains(text, w.dir) {
				return text
			}
			if _, err := os.Stat(to); err == nil {
				return "it has written a file"
			}
			if _, now := ask(count); !strings.Contains(now, canary) || len(now) != len(before) {
				return "what was there is another: " + now
			}
			return ""
		}})
	}
}

// TestRedTeamConditions: no condition of a run takes the time of others.
func TestRedTeamConditions(t *testing.T) {
	t.Parallel()
	w := newRedWorld(t)
	w.addTenant("acme")
	ana, eve := w.addPerson("default", "ana", "user"), w.addPerson("acme", "eve", "user")
	list := "[" + strings.Repeat("0,", 30) + "0]"
	nested := func(deep int, inner string) string { // within the 1,024 bytes of a condition
		out := inner
		for i := range deep {
			out = list + ".all(" + string(rune('a'+i)) + "," + out + ")"
		}
		return out
	}
	run := func(condition string) (string, int) {
		id := w.startRun(ana, "quick", nil)
		status, _, _ := w.knock(ana, http.MethodPost, "/v1/runs/"+id+"/patch", map[string]any{
			"patch_version": "0.1", "justification": "to see more", "add_nodes": []any{map[string]any{"id": "more", "type": "function", "fn": pay, "inputs": map[string]string{"region": "eu"}}},
			"add_edges": []any{map[string]string{"from": "one", "to": "more", "condition": condition}},
		})
		return id, status
	}
	if got := w.calls(pay, func() { id, _ := run(nested(1, "a == 0")); w.rest(ana, id) }); got == "" {
		t.Fatal("a condition that holds does not: the attempts show nothing")
	}
	for name, condition := range map[string]string{
		"lists in lists": nested(12, "a == 0"), "texts": nested(8, `("aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa" + "a").contains("b") == false`), "expressions": nested(6, `"`+strings.Repeat("a", 300)+`".matches("(a*)*(a*)*b") == false`),
		"growing": `[["a"]].map(a, ` + nested(4, "a == a") + `)` + ".size() > 0", "nesting": strings.Repeat("(", 500) + "true" + strings.Repeat(")", 500), "nots": strings.Repeat("!", 1000) + "true", "a regular expression": `"a".matches("` + strings.Repeat("(a{1,100}", 8) + strings.Repeat("){1,100}", 8) + `")`,
		"a number": `double("1e308") * double("1e308") > 0.0`, "nothing": "nodes.none.outputs.x == 1", "itself": "nodes.more.outputs.x == 1", "division": "1 / 0 == 1", "durations": `duration("999999999999s") > duration("0s")`,
	} {
		attack(t, attempt{"a condition with " + name, func() string {
			id, status := run(condition)
			if status >= http.StatusInternalServerError && status != http.StatusServiceUnavailable {
				return http.StatusText(status)
			}
			w.rest(ana, id)
			if status, _, text := w.knock(eve, http.MethodPost, "/agent/artifacts", map[string]string{"a": name}); status/100 != 2 {
				return "another tenant waits: " + text
			}
			return ""
		}})
	}
}
