//go:build integration

package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"aob.dev/writ/internal/node"
)

// TestIntegrationMoveTenant: an operator moves a tenant between two cells of real processes that
// share an OpenSearch. Its user goes on in the new one, with the same key and session, and hears
// in the old one where that is.
func TestIntegrationMoveTenant(t *testing.T) {
	search := startOpenSearch(t)
	old, next := startCity(t, search.URL, "old"), startCity(t, search.URL, "next")
	as := []string{"--url", old.url, "--key", filepath.Join(old.dir, "operator", "keys", "operator.pem")}
	old.writ(append([]string{"tenant", "add", "acme"}, as...)...)
	old.writ(append([]string{"user", "put", "ana", "--role", "user", "--tenant", "acme"}, as...)...)
	old.writ(append([]string{"user", "put", "ben", "--role", "approver", "--tenant", "acme"}, as...)...)
	key := strings.Fields(old.writ(append([]string{"apikey", "create", "desk", "--user", "ana", "--role", "user", "--tenant", "acme"}, as...)...))[0]
	if status, text := old.says(key, "hello"); status != http.StatusOK {
		t.Fatalf("the old cell: HTTP %d %s", status, text)
	}
	if status, text := next.says(key, "hello"); status != http.StatusUnauthorized {
		t.Fatalf("the new cell: HTTP %d %s", status, text)
	}

	move := []string{"cell", "move-tenant", "acme", old.dir, next.dir, "--config", old.config, "--to-config", next.config, "--instance", "m", "--json"}
	var moved node.Moved
	if err := json.Unmarshal([]byte(old.writ(move...)), &moved); err != nil || moved.Tenant != "acme" || moved.Documents == 0 || moved.Orders < 4 {
		t.Fatalf("%+v, %v", moved, err)
	}
	if err := json.Unmarshal([]byte(old.writ(move...)), &moved); err != nil || moved.Orders != 0 { // there is nothing left to do
		t.Errorf("again: %+v, %v", moved, err)
	}
	if status, text := next.says(key, "hello again"); status != http.StatusOK {
		t.Errorf("the new cell: HTTP %d %s", status, text)
	}
	if status, text := old.says(key, "hello again"); status == http.StatusOK || !strings.Contains(text, moved.To) {
		t.Errorf("the old cell: HTTP %d %s", status, text)
	}
}

// city is a cell of two processes: one that routes, and one that has all other roles.
type city struct {
	*cell
	url string // of the gateway
}

func startCity(t *testing.T, documents, prefix string) city {
	t.Helper()
	processes := []string{"frames:a", "router:m"}
	var others []string
	for _, role := range node.Roles() {
		if role != "monitor" {
			processes = append(processes, nameOf(role)+":a")
		}
		if role != "monitor" && role != "router" {
			others = append(others, role)
		}
	}
	c := makeCell(t, documents+"\ndocuments_prefix: "+prefix, func(accounts []byte) []string {
		return []string{natsServer(t, append(fmt.Appendf(nil, "listen: 127.0.0.1:-1\njetstream { store_dir: %q, sync_interval: always }\n", t.TempDir()), accounts...))}
	}, processes...)
	c.writ("cell", "begin", c.dir, "--config", c.config, "--instance", "a")
	at := freeAddress(t)
	router := c.serve("a", []string{"router"}, "--recorders", "http://"+at)
	x := c.serve("a", others, "--listen", at, "--recorders", "http://"+at, "--routers", router.url)
	return city{c, x.url}
}

// says what comes of a message in the user's session.
func (x city) says(key, message string) (status int, text string) {
	x.Helper()
	body, _ := json.Marshal(map[string]string{"message": message, "session_id": "s1"})
	req, err := http.NewRequestWithContext(x.Context(), http.MethodPost, x.url+"/agent/run", bytes.NewReader(body))
	if err != nil {
		x.Fatal(err)
	}
	req.Header.Set("X-Api-Key", key)
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		x.Fatal(err)
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		x.Fatal(err)
	}
	return resp.StatusCode, string(raw)
}
