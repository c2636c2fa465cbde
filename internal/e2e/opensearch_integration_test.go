//go:build integration

package e2e

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/testing/opensearchtest"
	"aob.dev/writ/storage"
	driver "aob.dev/writ/storage/opensearch"
)

// TestIntegrationOnOpenSearch runs tests of the whole chain again, in a process of
// its own, with the documents in an OpenSearch: nothing of it knows.
func TestIntegrationOnOpenSearch(t *testing.T) {
	t.Parallel()
	url := opensearchtest.Shared(t)
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), exe, "-test.run", "^Test(Demo|Tasks|Insufficient|ContractViolation|KillBetweenSteps|Principal)",
		"-test.v", "-test.timeout=8m", "-test.parallel=1")
	cmd.Env = append(os.Environ(), "WRIT_TEST_OPENSEARCH="+url)
	out, err := cmd.CombinedOutput()
	text := string(out)
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	if passed := strings.Count(text, "\n--- PASS: Test"); passed < 6 || strings.Contains(text, "--- SKIP") {
		t.Fatalf("%d tests passed\n%s", passed, text)
	}
	resp, err := http.Get(url + "/_cat/indices/t*-agent_memory-000001?h=docs.count&s=docs.count:desc")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	most := make([]byte, 1)
	if n, _ := resp.Body.Read(most); n == 0 || most[0] == '0' {
		t.Fatal("nothing has come to the OpenSearch")
	}
}

// TestIntegrationStoreOutage: while the OpenSearch is away, intents that need it
// fail retryably and say so, all others go on; when it is back the projections
// catch up, and each intent is in the index once.
func TestIntegrationStoreOutage(t *testing.T) {
	server := opensearchtest.Own(t)
	t.Setenv("WRIT_TEST_OPENSEARCH", server.URL)
	s := start(t, setup{})
	ana := s.addPerson("default", "ana", "user")
	if status, p := s.call(ana, http.MethodGet, "/agent/memory/query?query_text=x", nil, new(catalog.MemoryQueryResult)); status != http.StatusOK {
		t.Fatalf("HTTP %d %+v", status, p)
	}

	if err := server.Kill(); err != nil {
		t.Fatal(err)
	}
	const others = 30
	for i := range others / 2 {
		s.addPerson("default", fmt.Sprint("bob", i), "user")
	}
	for range 3 {
		if status, p := s.call(ana, http.MethodGet, "/agent/memory/query?query_text=x", nil, nil); status < http.StatusInternalServerError || p.Code != intents.ExecutorFailed || !strings.Contains(p.Detail, "does not answer") {
			t.Fatalf("HTTP %d %+v", status, p)
		}
	}
	for i := range others / 2 {
		s.addPerson("default", fmt.Sprint("eve", i), "user")
	}
	failed := 0
	for _, o := range s.intents("") {
		if o.Type != "memory.query" || o.Outcome == nil || o.Outcome.Code == intents.OK {
			continue
		}
		if failed++; o.Outcome.Code != intents.ExecutorFailed || !o.Outcome.Retryable {
			t.Errorf("outcome %+v", o.Outcome)
		}
	}
	if failed != 3 {
		t.Errorf("%d intents failed", failed)
	}
	if err := server.Run(t.Context()); err != nil {
		t.Fatal(err)
	}

	if status, p := s.call(ana, http.MethodGet, "/agent/memory/query?query_text=x", nil, new(catalog.MemoryQueryResult)); status != http.StatusOK {
		t.Fatalf("HTTP %d %+v", status, p)
	}
	want := map[string]int64{} // by tenant
	for _, o := range s.intents("") {
		want[o.Tenant]++
	}
	cfg := documents(s.dir)
	cfg.Check = storage.NewCheck(storage.DefaultDimension)
	docs, err := driver.Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer docs.Close()
	for tenant, total := range want {
		s.await("every intent of "+tenant+" is in the index, once", func() bool {
			b, err := docs.Aggregate(t.Context(), tenant, storage.IndexIntents, storage.Query{}, storage.Aggregation{})
			if err != nil {
				t.Fatal(err)
			}
			if len(b) == 1 && b[0].Count > total {
				t.Fatalf("%d intents of %s, %d in the index", total, tenant, b[0].Count)
			}
			return len(b) == 1 && b[0].Count == total
		})
	}
	if want["system"] < others {
		t.Fatalf("intents %v", want)
	}
}
