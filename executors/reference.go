package executors

import (
	"bytes"
	"context"
	"encoding/json"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/storage"
)

// Content is the answer of a service: JSON, or text, or JSON with the text in which it
// was received.
type Content struct {
	JSON json.RawMessage
	Text string

	Status string // catalog.Partial; empty: all of it is there

	Parts      []json.RawMessage // of the answer of an MCP server, for MCP clients; nil: the rest says it all
	Structured bool              // JSON is, or has as its result, the server's structured content
}

// Large reports whether the content has 50,000 bytes or more as received, so that it
// becomes a file.
func (c Content) Large() bool {
	if len(c.JSON) > 0 {
		return len(c.JSON) >= storage.InlineLimit
	}
	return len(c.Text) >= storage.InlineLimit
}

// inline is the content as a JSON value.
func (c Content) inline() (json.RawMessage, error) {
	if len(c.JSON) > 0 {
		return c.JSON, nil
	}
	return intents.MarshalPlain(c.Text)
}

// file is the content as a file: the text as received where it equals the JSON, else the JSON with
// one array element a line.
func (c Content) file() ([]byte, error) {
	if len(c.JSON) == 0 || sameJSON(c.JSON, []byte(c.Text)) {
		return []byte(c.Text), nil
	}
	return layout(c.JSON)
}

// sameJSON compares documents without their white space.
func sameJSON(a, b []byte) bool {
	if len(b) == 0 {
		return false
	}
	var x, y bytes.Buffer
	return json.Compact(&x, a) == nil && json.Compact(&y, b) == nil && bytes.Equal(x.Bytes(), y.Bytes())
}

// InlineOrFile is the content-length check: content below 50,000 bytes comes back inline;
// from there on it becomes a file of the scope, and only its size, digest and
// first lines come back. What a policy has removed from results of the intent is in neither.
func InlineOrFile(ctx context.Context, o *Intent, blobs storage.Blobs, s storage.Scope, c Content) (json.RawMessage, *catalog.Reference, error) {
	c, err := o.redactor.redacted(c)
	if err != nil {
		return nil, nil, err
	}
	if !c.Large() {
		inline, err := c.inline()
		return inline, nil, err
	}
	body, err := c.file()
	if err != nil {
		return nil, nil, err
	}
	file, err := blobs.Put(ctx, s, bytes.NewReader(body))
	if err != nil {
		return nil, nil, Store(err)
	}
	sample, _, err := Lines(ctx, bytes.NewReader(body), 0, catalog.SampleLines)
	if err != nil {
		return nil, nil, err
	}
	if o.Redacts() {
		o.redactor.files++
	}
	return nil, &catalog.Reference{FileID: file.ID, SizeBytes: file.Size, SHA256: file.SHA256, Sample: sample}, nil
}

// Scope is the step whose temporary files the intent may use: that of its
// task. An intent outside a task has none.
func (o *Intent) Scope() (storage.Scope, error) {
	t := o.Ticket.Scope
	if t == nil {
		return storage.Scope{}, Fail(intents.MalformedArgs, "temporary files belong to a task, and the intent has none")
	}
	return storage.Scope{Tenant: o.Ticket.Actor.Tenant, Plan: t.Plan, Revision: t.Revision, Step: t.Step, Ask: t.Ask}, nil
}
