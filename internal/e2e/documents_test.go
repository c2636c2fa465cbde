package e2e

import (
	"crypto/sha256"
	"fmt"
	"os"

	"aob.dev/writ/internal/datadir"
)

// documents of a data directory are in SQLite, or, where the whole suite is run
// again on an OpenSearch (see TestIntegrationOnOpenSearch), in indices of its own.
func documents(dir string) datadir.DocumentsAt {
	url := os.Getenv("WRIT_TEST_OPENSEARCH")
	if url == "" {
		return datadir.DocumentsAt{}
	}
	kind := "t"
	if inCell() {
		kind = "c"
	}
	return datadir.DocumentsAt{URL: url, Prefix: prefix(kind, dir)}
}

// prefix of a directory's indices, of which one server has those of many.
func prefix(kind, dir string) string {
	sum := sha256.Sum256([]byte(dir))
	return fmt.Sprintf("%s%x-", kind, sum[:6])
}

// documentsEnv configures a process likewise.
func documentsEnv(dir string) []string {
	d := documents(dir)
	return []string{"WRIT_DOCUMENTS=" + d.URL, "WRIT_DOCUMENTS_PREFIX=" + d.Prefix}
}
