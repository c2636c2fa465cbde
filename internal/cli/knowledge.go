package cli

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"time"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
)

var queryCommand = asks(request[json.RawMessage]{method: http.MethodPost, path: "/query/", body: queryBody, text: queryText})

func queryBody(c *command) func(args []string) (any, error) {
	var since, until time.Time
	c.since(&since, "since", "only what was created at this time or later: RFC 3339, or a duration before now such as 7d")
	c.since(&until, "until", "only what was created before this time")
	limit := c.Flags().Int("limit", 0, "maximum number of entries")
	after := c.Flags().String("after", "", "continue after this cursor")
	session := c.Flags().String("session", "", "session whose memories are read, too")
	byDay := c.Flags().Bool("by-day", false, "usage of each day")
	wholeTenant := c.Flags().Bool("whole-tenant", false, "of all users of the tenant; needs audit:read")
	return func(args []string) (any, error) {
		if len(args) == 1 { // MODE QUERY in one argument
			args = strings.SplitN(strings.TrimSpace(args[0]), " ", 2)
		}
		if len(args) < 2 {
			return nil, usage(errors.New(`what is asked is missing: writ query "SQL SELECT …", writ query SEARCH TEXT`))
		}
		body := map[string]any{
			"mode": args[0], "query": strings.TrimSpace(args[1]), "session_id": *session, "by_day": *byDay, "whole_tenant": *wholeTenant, "limit": *limit, "after": *after,
		}
		for name, at := range map[string]time.Time{"since": since, "until": until} {
			if !at.IsZero() {
				body[name] = intents.FormatTime(at)
			}
		}
		return body, nil
	}
}

// queryText shows usage and messages as lines, anything else as it came.
func queryText(_ []string, raw json.RawMessage) string {
	var found struct {
		catalog.PlanUsageResult
		catalog.MessageListResult
	}
	if json.Unmarshal(raw, &found) == nil && (found.Usage != nil || found.Messages != nil) {
		return render("found.table", found)
	}
	var text strings.Builder
	_ = printJSON(&text, raw) // it is JSON, and a builder takes everything
	return text.String()
}

const documentsPath = "/agent/kb/documents"

var kbRows = []row{
	{use: "add FILE", short: "Add a document: text, Markdown, HTML or PDF", make: asks(request[catalog.KBIndexResult]{
		method: http.MethodPost, path: documentsPath, body: kbAdd,
		text: func(_ []string, got catalog.KBIndexResult) string {
			return fmt.Sprintf("%s  %d parts\n", got.DocumentID, got.Chunks)
		},
	})},
	{use: "search QUESTION", short: "Find parts of documents by words and by meaning", make: asks(request[catalog.KBSearchResult]{
		method: http.MethodPost, path: "/agent/kb/search", body: kbSearch,
		text: shown[catalog.KBSearchResult]("hits.table"), none: "no part of a document matches: writ kb list shows the documents",
		note: func(got catalog.KBSearchResult) string {
			if got.Reason == "" {
				return ""
			}
			return "limited search: " + printable(got.Reason) + "\n"
		},
	})},
	{use: "list", short: "List your documents and those of the tenant, newest first", make: asks(request[catalog.KBListResult]{
		path: documentsPath, page: true,
		text: shown[catalog.KBListResult]("documents.table"), none: "no document is there: writ kb add FILE adds one",
	})},
	{use: "remove DOCUMENT_ID", short: "Remove a document", make: asks(request[catalog.KBRemoveResult]{
		method: http.MethodDelete, path: documentsPath + "/{}", ids: &ownDocuments,
		query: []param{{flag: "scope", help: "that of the document: user (default) or tenant"}},
		text:  func(_ []string, got catalog.KBRemoveResult) string { return "removed " + got.DocumentID + "\n" },
	})},
}

// mediaTypes of files that kb add reads, by their ending.
var mediaTypes = map[string]string{".md": "text/markdown", ".markdown": "text/markdown", ".html": "text/html", ".htm": "text/html", ".pdf": "application/pdf"}

func kbAdd(c *command) func(args []string) (any, error) {
	title := c.Flags().String("title", "", "what it is called (default: the name of the file)")
	mediaType := c.Flags().String("type", "", "text/plain, text/markdown, text/html or application/pdf (default: by the ending of the file)")
	metadata := c.Flags().StringToString("meta", nil, "KEY=VALUE that searches can filter by; may be repeated")
	scope := c.Flags().String("scope", "", "who finds it: user (default), or tenant, which needs kb:write:tenant")
	supersedes := c.Flags().String("supersedes", "", "document that it replaces")
	return func(args []string) (any, error) {
		raw, err := readFile(args[0])
		if err != nil {
			return nil, err
		}
		to, err := c.client()
		if err != nil {
			return nil, err
		}
		if *supersedes != "" {
			if *supersedes, err = c.wholeID(*supersedes, &ownDocuments); err != nil {
				return nil, err
			}
		}
		ending := mediaTypes[strings.ToLower(filepath.Ext(args[0]))]
		add := catalog.KBIndex{
			Title: cmp.Or(*title, filepath.Base(args[0])), MediaType: cmp.Or(*mediaType, ending, "text/plain"),
			Metadata: *metadata, Scope: *scope, Supersedes: *supersedes,
		}
		add.From, err = to.Upload(c.Context(), filepath.Base(args[0]), add.MediaType, raw)
		return add, err
	}
}

func kbSearch(c *command) func(args []string) (any, error) {
	k := c.Flags().Int("k", 0, "maximum number of parts, 1 to 50 (default 5)")
	filters := c.Flags().StringToString("filter", nil, "KEY=VALUE that must hold: scope, document_id, media_type or metadata; may be repeated")
	words := c.Flags().Bool("words", false, "by words alone, without vectors")
	return func(args []string) (any, error) {
		q := catalog.KBSearch{Q: args[0], Filters: *filters}
		if c.Flags().Changed("k") {
			q.K = k
		}
		if *words {
			q.Hybrid = new(bool)
		}
		return q, nil
	}
}
