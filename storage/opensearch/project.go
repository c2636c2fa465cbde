package opensearch

import (
	"context"

	"aob.dev/writ/storage"
)

// Project writes what follows from the journal; see storage.Documents. There are no
// transactions: a crash leaves any part of it written. All documents that may
// change are looked up at once and written at once; one that another process
// changed in between goes through its fence alone.
func (d *Documents) Project(ctx context.Context, tenant, index string, p storage.Projection) error {
	if len(p.Put) > 0 {
		if err := storage.MayChange(index); err != nil {
			return err
		}
	}
	for _, doc := range p.Put { // nothing is written unless all may be
		if _, err := storage.Admit(d.cfg.Check, tenant, index, doc); err != nil {
			return err
		}
	}
	if _, err := d.Create(ctx, tenant, index, p.Created...); err != nil {
		return err
	}
	for rest := p.Put; len(rest) > 0; {
		n := min(len(rest), bulkActions)
		if err := d.putMany(ctx, tenant, index, rest[:n]); err != nil {
			return err
		}
		rest = rest[n:]
	}
	return nil
}

// putMany writes what is newer than what is stored, in parts that the server takes.
func (d *Documents) putMany(ctx context.Context, tenant, index string, docs []storage.Document) error {
	versions, err := d.versions(ctx, tenant, index, docs...)
	if err != nil {
		return err
	}
	home := d.alias(index)
	for len(docs) > 0 {
		var b bulk
		var sent []storage.Document
		for len(docs) > 0 && !b.full() {
			doc, old := docs[0], versions[0]
			docs, versions = docs[1:], versions[1:]
			if write, err := storage.NewerFence(old.at(), doc.Position); err != nil || !write {
				continue
			}
			source, err := encode(doc)
			if err != nil {
				return err
			}
			action, target := "create", object{"_index": home, "_id": key(tenant, doc.ID), "require_alias": true}
			if old != nil {
				action, target["if_seq_no"], target["if_primary_term"] = "index", old.SeqNo, old.Term
			}
			if err := b.add(action, target, source); err != nil {
				return err
			}
			sent = append(sent, doc)
		}
		_, lost, err := d.bulk(ctx, index, &b)
		if err != nil {
			return err
		}
		for _, i := range lost {
			if err := d.fenced(ctx, tenant, index, storage.NewerFence, sent[i]); err != nil {
				return err
			}
		}
	}
	return nil
}
