package cli

import (
	"cmp"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"strings"

	"aob.dev/writ/intents/catalog"
)

// mediaTypes of files that kb add reads, by their ending.
var mediaTypes = map[string]string{".md": "text/markdown", ".markdown": "text/markdown", ".html": "text/html", ".htm": "text/html", ".pdf": "application/pdf"}

func kbAdd(c *command) {
	c.personFlags()
	title := c.Flags().String("title", "", "what it is called (default: the name of the file)")
	mediaType := c.Flags().String("type", "", "text/plain, text/markdown, text/html or application/pdf (default: by the ending of the file)")
	metadata := c.Flags().StringToString("meta", nil, "KEY=VALUE that searches can filter by; may be repeated")
	scope := c.Flags().String("scope", "", "who finds it: user (default), or tenant, which needs kb:write:tenant")
	supersedes := c.Flags().String("supersedes", "", "document that it replaces")
	c.answer = func(args []string) (answer, error) {
		raw, err := readFile(args[0])
		if err != nil {
			return answer{}, err
		}
		to, err := c.client()
		if err != nil {
			return answer{}, err
		}
		ending := mediaTypes[strings.ToLower(filepath.Ext(args[0]))]
		add := catalog.KBIndex{
			Title: cmp.Or(*title, filepath.Base(args[0])), MediaType: cmp.Or(*mediaType, ending, "text/plain"),
			Metadata: *metadata, Scope: *scope, Supersedes: *supersedes,
		}
		if add.From, err = to.Upload(c.Context(), filepath.Base(args[0]), add.MediaType, raw); err != nil {
			return answer{}, err
		}
		var got catalog.KBIndexResult
		err = to.Post(c.Context(), "/agent/kb/documents", add, &got)
		return answer{data: got, text: fmt.Sprintf("%s  %d parts\n", got.DocumentID, got.Chunks)}, err
	}
}

func kbSearch(c *command) {
	c.personFlags()
	k := c.Flags().Int("k", 0, "maximum number of parts, 1 to 50 (default 5)")
	filters := c.Flags().StringToString("filter", nil, "KEY=VALUE that must hold: scope, document_id, media_type or metadata; may be repeated")
	words := c.Flags().Bool("words", false, "by words alone, without vectors")
	c.answer = func(args []string) (answer, error) {
		q := catalog.KBSearch{Q: args[0], Filters: *filters}
		if c.Flags().Changed("k") {
			q.K = k
		}
		if *words {
			q.Hybrid = new(bool)
		}
		var got catalog.KBSearchResult
		err := c.post("/agent/kb/search", q, &got)
		a := answer{data: got, text: render("hits.table", got)}
		if got.Reason != "" {
			a.note = printable(got.Reason) + "\n"
		}
		return a, err
	}
}

func kbList(c *command) {
	c.personFlags()
	page := c.pageFlags()
	c.answer = func([]string) (answer, error) {
		var got catalog.KBListResult
		err := c.get("/agent/kb/documents"+page(map[string]string{}), &got)
		return answer{data: got, note: nextPage(got.Cursor), text: render("documents.table", got)}, err
	}
}

func kbRemove(c *command) {
	c.personFlags()
	scope := c.Flags().String("scope", "", "that of the document: user (default) or tenant")
	c.answer = func(args []string) (answer, error) {
		path := "/agent/kb/documents/" + url.PathEscape(args[0])
		if *scope != "" {
			path += "?scope=" + url.QueryEscape(*scope)
		}
		var got catalog.KBRemoveResult
		err := c.remove(path, &got)
		return answer{data: got, text: "removed " + got.DocumentID + "\n"}, err
	}
}

func cacheStats(c *command) {
	c.personFlags()
	c.answer = func([]string) (answer, error) {
		var got catalog.CacheStatsResult
		err := c.get("/agent/cache", &got)
		return answer{data: got, text: render("cached.table", got)}, err
	}
}

func cacheClear(c *command) {
	c.personFlags()
	c.answer = func(args []string) (answer, error) {
		if args[0] != catalog.CacheWorkflow && args[0] != catalog.CacheSkill && args[0] != catalog.CacheKey {
			return answer{}, usage(errors.New("SCOPE is workflow (KEY: a run or plan), skill (KEY: its id) or key (KEY: as writ cache stats prints it)"))
		}
		var got catalog.CacheInvalidateResult
		err := c.post("/agent/cache/invalidate", catalog.CacheInvalidate{Scope: args[0], Key: args[1]}, &got)
		return answer{data: got, text: fmt.Sprintf("%d answers removed\n", got.Removed)}, err
	}
}
