package storagetest

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"aob.dev/writ/storage"
	"aob.dev/writ/storage/sqlite"
)

// TestDocuments runs the suite for the embedded driver; TestIntegrationDocuments does for
// that on a server.
func TestDocuments(t *testing.T) {
	t.Run("sqlite", func(t *testing.T) {
		testDocuments(t, func(t testing.TB) storage.Documents {
			t.Helper()
			d, err := sqlite.OpenDocuments(t.Context(), filepath.Join(t.TempDir(), "documents.db"), storage.NewCheck(dimension), 0)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				if err := d.Close(); err != nil {
					t.Error(err)
				}
			})
			return d
		})
	})
}

// testDocuments checks storage.Documents. open opens an empty store that checks documents
// with storage.NewCheck(dimension). Every test names a tenant of its own, so that all can
// share a server.
func testDocuments(t *testing.T, open func(t testing.TB) storage.Documents) {
	t.Helper()
	for name, test := range map[string]func(*documents){
		"PutAndGet":         testPutAndGet,
		"PutFence":          testPutFence,
		"SwapFence":         testSwapFence,
		"SwapMany":          testSwapMany,
		"Create":            testCreate,
		"CreateMany":        testCreateMany,
		"Project":           testProject,
		"ProjectMany":       testProjectMany,
		"Delete":            testDelete,
		"SchemaError":       testSchemaError,
		"OtherTenant":       testOtherTenant,
		"OtherIndex":        testOtherIndex,
		"Terms":             testTerms,
		"TermsFollowWrites": testTermsFollowWrites,
		"Every":             testEvery,
		"Sort":              testSort,
		"SortMissing":       testSortMissing,
		"Pages":             testPages,
		"PagesOfMany":       testPagesOfMany,
		"Text":              testText,
		"TextPages":         testTextPages,
		"TextIsNoSyntax":    testTextIsNoSyntax,
		"Expired":           testExpired,
		"Ranges":            testRanges,
		"Vector":            testVector,
		"VectorOfMany":      testVectorOfMany,
		"Aggregate":         testAggregate,
		"Purge":             testPurge,
		"BadQueries":        testBadQueries,
		"CancelledDocument": testCancelledDocument,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(&documents{T: t, Documents: open(t), tenant: "t" + fmt.Sprint(len(name)) + name})
		})
	}
}

// documents is one store under test, seen by one tenant.
type documents struct {
	*testing.T
	storage.Documents
	tenant string
}

// memory is a document of agent_memory. Extra members replace the default ones.
func (d *documents) memory(id string, position int64, extra ...any) storage.Document {
	d.Helper()
	m := map[string]any{
		"id": id, "tenant_id": d.tenant, "scope": "session", "key": "k:" + id, "text": "nothing to say",
		"created_at": "2026-11-20T10:00:00.000Z",
	}
	for i := 0; i < len(extra); i += 2 {
		name, ok := extra[i].(string)
		if !ok {
			d.Fatalf("member name %v", extra[i])
		}
		m[name] = extra[i+1]
	}
	return d.document(id, position, m)
}

func (d *documents) document(id string, position int64, members map[string]any) storage.Document {
	d.Helper()
	body, err := json.Marshal(members)
	if err != nil {
		d.Fatal(err)
	}
	return storage.Document{ID: id, Position: position, Body: body}
}

// refresh makes writes visible.
func (d *documents) refresh() {
	d.Helper()
	if r, ok := d.Documents.(storage.Refresher); ok {
		if err := r.Refresh(d.Context(), storage.Indices...); err != nil {
			d.Fatal(err)
		}
	}
}

func (d *documents) put(docs ...storage.Document) {
	d.Helper()
	for _, doc := range docs {
		if err := d.Put(d.Context(), d.tenant, storage.IndexMemory, doc); err != nil {
			d.Fatalf("put %s: %v", doc.ID, err)
		}
	}
}

// other is another tenant of the same store.
func (d *documents) other() *documents {
	return &documents{T: d.T, Documents: d.Documents, tenant: d.tenant + "x"}
}

// create returns how many of the documents did not exist.
func (d *documents) create(docs ...storage.Document) int {
	d.Helper()
	n, err := d.Create(d.Context(), d.tenant, storage.IndexMemory, docs...)
	if err != nil {
		d.Fatal(err)
	}
	return n
}

func (d *documents) missing(id string) {
	d.Helper()
	if _, err := d.Get(d.Context(), d.tenant, storage.IndexMemory, id); !errors.Is(err, storage.ErrNotFound) {
		d.Fatalf("get %s: %v", id, err)
	}
}

// refuses checks that no query of these is answered.
func (d *documents) refuses(queries map[string]storage.Query) {
	d.Helper()
	for name, q := range queries {
		if page, err := d.Search(d.Context(), d.tenant, storage.IndexMemory, q); err == nil {
			d.Fatalf("%s: found %d documents", name, len(page.Documents))
		}
	}
}

// holds checks the result of Get.
func (d *documents) holds(want storage.Document) {
	d.Helper()
	got, err := d.Get(d.Context(), d.tenant, storage.IndexMemory, want.ID)
	if err != nil {
		d.Fatalf("get %s: %v", want.ID, err)
	}
	if got.ID != want.ID || got.Position != want.Position || !sameJSON(d.T, got.Body, want.Body) {
		d.Fatalf("got %s at %d: %s; want %s at %d: %s", got.ID, got.Position, got.Body, want.ID, want.Position, want.Body)
	}
}

func sameJSON(t *testing.T, a, b json.RawMessage) bool {
	t.Helper()
	var x, y any
	if err := json.Unmarshal(a, &x); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, &y); err != nil {
		t.Fatal(err)
	}
	return cmp.Equal(x, y)
}

// search returns one page of ids, after writes have become visible.
func (d *documents) search(q storage.Query) ([]string, string) {
	d.Helper()
	d.refresh()
	return d.page(q)
}

func (d *documents) page(q storage.Query) ([]string, string) {
	d.Helper()
	page, err := d.Search(d.Context(), d.tenant, storage.IndexMemory, q)
	if err != nil {
		d.Fatalf("search %+v: %v", q, err)
	}
	ids := []string{}
	for i, doc := range page.Documents {
		if i < 100 {
			d.holds(doc) // Search and Get tell the same
		}
		ids = append(ids, doc.ID)
	}
	return ids, page.Cursor
}

// finds checks the ids of a query that fits a page, in order.
func (d *documents) finds(q storage.Query, want ...string) {
	d.Helper()
	got, cursor := d.search(q)
	if !slices.Equal(got, want) || cursor != "" {
		d.Fatalf("search %+v = %v, cursor %q; want %v", q, got, cursor, want)
	}
}

// pages follows the cursor to the end.
func (d *documents) pages(q storage.Query) (all []string) {
	d.Helper()
	d.refresh()
	for {
		ids, cursor := d.page(q)
		all = append(all, ids...)
		if cursor == "" {
			return all
		}
		if len(ids) != q.Limit {
			d.Fatalf("a page of %d before the last, limit %d", len(ids), q.Limit)
		}
		q.After = cursor
	}
}
