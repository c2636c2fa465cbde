//go:build integration

package views_test

import (
	"testing"

	"aob.dev/writ/internal/testing/opensearchtest"
	"aob.dev/writ/storage"
	"aob.dev/writ/storage/opensearch"
)

// TestIntegrationReports: what the store of one process answers, an OpenSearch answers.
func TestIntegrationReports(t *testing.T) {
	server := opensearchtest.Shared(t)
	const dimension = 8
	for prefix, test := range map[string]func(*testing.T, storage.Documents, func()){"reports-": reports, "messages-": messages, "schemas-": agentRows} {
		t.Run(prefix, func(t *testing.T) {
			d, err := opensearch.Open(opensearch.Config{URL: server, Prefix: prefix, Dimension: dimension, Check: storage.NewCheck(dimension)})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = d.Close() })
			if err := d.Migrate(t.Context()); err != nil {
				t.Fatal(err)
			}
			test(t, d, func() {
				if err := d.Refresh(t.Context(), storage.IndexPlans, storage.IndexSkillCalls, storage.IndexMessages, storage.IndexSchemas); err != nil {
					t.Fatal(err)
				}
			})
		})
	}
}
