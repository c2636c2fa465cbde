package e2e

import (
	"net/http"
	"strings"
	"testing"
)

// TestRedTeamBombs: no query of one tenant, several at once, makes a node unready, keeps others
// from theirs or brings back much.
func TestRedTeamBombs(t *testing.T) {
	t.Parallel()
	w := newRedWorld(t)
	w.addTenant("acme")
	ana, eve := w.addPerson("default", "ana", "user"), w.addPerson("acme", "eve", "user")
	for _, who := range []person{ana, eve} {
		w.knock(who, http.MethodPost, "/agent/run", map[string]string{"agent": "general", "message": strings.Repeat("a", 5000)})
	}
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
		"regexp":              `SELECT * FROM messages WHERE content REGEXP '(a+)+b'`,
	} {
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
			if status, _, text := w.knock(ana, http.MethodPost, "/query/", map[string]string{"mode": "SQL", "query": "SELECT content FROM messages LIMIT 1"}); status != http.StatusOK {
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
