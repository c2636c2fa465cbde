package e2e

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"aob.dev/writ/intents/catalog"
)

const shopDocument = `
openapi: 3.1.0
info: {title: Shop, version: "1"}
paths:
  /stock/{part}:
    get:
      operationId: getStock
      summary: Tells how many of a part are in stock.
      parameters: [{name: part, in: path, required: true, schema: {type: string}}]
      responses: {"200": {description: ok}}
    put:
      operationId: setStock
      parameters: [{name: part, in: path, required: true, schema: {type: string}}]
      requestBody: {content: {application/json: {schema: {type: object, properties: {count: {type: integer}}}}}}
      responses: {"200": {description: ok}}
`

// TestOpenAPIServer: an HTTP API is a skill server by its document. Each operation, GET included,
// waits for people until an operator approves it as one that only reads.
func TestOpenAPIServer(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var seen []string
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		mu.Lock()
		defer mu.Unlock()
		seen = append(seen, r.Method+" "+r.URL.Path+" "+string(body))
		w.Header().Set("Content-Type", "application/json")
		if r.URL.Path == "/v1/stock/none" {
			w.WriteHeader(http.StatusNotFound)
			_, _ = io.WriteString(w, `{"error":"no such part"}`)
			return
		}
		_, _ = io.WriteString(w, `{"count":7}`)
	}))
	t.Cleanup(api.Close)
	file := filepath.Join(t.TempDir(), "shop.yaml")
	if err := os.WriteFile(file, []byte(shopDocument), 0o600); err != nil {
		t.Fatal(err)
	}
	s := start(t, setup{Skills: []string{"name=shop openapi=" + file + " url=" + api.URL + "/v1"}})
	ben := s.addApprover("default", "ben")
	c := s.mcpClient(s.addPerson("default", "ana", "user"))
	held := s.use(c, "getStock", map[string]any{"part": "bolt"})
	id, _ := held["intent_id"].(string)
	if held["status"] != "held" || len(seen) != 0 {
		t.Fatalf("a GET: %v, sent %q", held, seen)
	}
	if done, p := s.decide(ben, id, catalog.DecisionApprove, "look"); p.Code != "" {
		t.Fatalf("%+v %+v", done, p)
	}
	for _, o := range s.intents("") {
		var pin catalog.SkillApprove
		if json.Unmarshal(o.Args, &pin); o.Type == "skill.approve" && pin.Skill == "shop.getStock" {
			pin.Effect = catalog.Pure
			s.operate("skill.approve", pin)
		}
	}
	if got := s.use(c, "getStock", map[string]any{"part": "nut"}); got["count"] != 7.0 {
		t.Errorf("approved as pure: %v", got)
	}
	if got := s.use(c, "getStock", map[string]any{"part": "none"}); got["code"] != "EXECUTOR_FAILED" || marshalled(got["details"]) == "null" {
		t.Errorf("404: %v", got)
	}
	if got := s.use(c, "getStock", map[string]any{"part": ".."}); got["code"] != "EXECUTOR_FAILED" {
		t.Errorf("a part that leads up: %v", got)
	}
	if got := s.use(c, "setStock", map[string]any{"part": "nut", "body": map[string]any{"count": 8}}); got["status"] != "held" {
		t.Errorf("a PUT: %v", got)
	}
	mu.Lock()
	defer mu.Unlock()
	if !slices.Equal(seen, []string{"GET /v1/stock/bolt ", "GET /v1/stock/nut ", "GET /v1/stock/none "}) {
		t.Errorf("sent %q", seen)
	}
}
