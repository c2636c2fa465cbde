package views

import (
	"cmp"
	"context"

	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/storage"
)

// What the members of a document of kb_chunks say: it is a document and no chunk, it can be found,
// and everybody of its tenant may read it.
const (
	KnowledgeDocument = "document"
	KnowledgeLive     = "live"
	Everybody         = storage.Everybody
)

// Knowledge lists the documents of the knowledge base that a user finds, newest first.
func Knowledge(ctx context.Context, docs storage.Documents, tenant, user string, args catalog.KBList) (catalog.KBListResult, error) {
	out := catalog.KBListResult{Documents: []catalog.KBDocument{}}
	if err := fresh(ctx, docs, storage.IndexChunks); err != nil {
		return out, err
	}
	page, err := docs.Search(ctx, tenant, storage.IndexChunks, storage.Query{
		Terms: map[string][]string{"kind": {KnowledgeDocument}, "state": {KnowledgeLive}, "reader": {user, Everybody}},
		Sort:  "-created_at", Limit: cmp.Or(args.Limit, DefaultList), After: args.After,
	})
	if err != nil {
		return out, err
	}
	for _, doc := range page.Documents {
		var found struct {
			catalog.KBDocument
			ID     string `json:"id"`
			Reader string `json:"reader"`
		}
		if err := read(doc, &found); err != nil {
			return out, err
		}
		d := found.KBDocument
		d.DocumentID, d.Scope = found.ID, catalog.KnowledgeOfUser
		switch found.Reader {
		case user:
		case Everybody:
			d.Scope = catalog.KnowledgeOfTenant
		default:
			continue // the store has filtered already
		}
		out.Documents = append(out.Documents, d)
	}
	out.Cursor = page.Cursor
	return out, nil
}
