package cli

import (
	"cmp"
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"
	"strings"
)

// request is a command's request to a running writ as the user of its API key, and the format of
// the answer.
type request[T any] struct {
	method string  // default: GET
	path   string  // {} is the first argument
	page   bool    // the answer is a page of a list
	query  []param // flags that become parameters of the path
	ids    *idSource

	// body declares the flags of the request body, and builds the body from them; nil: no body.
	body func(c *command) func(args []string) (any, error)

	text func(args []string, got T) string // for people
	none string                            // printed if text is empty
	note func(got T) string                // to standard error; nil: nothing
}

// param is a flag that becomes a parameter of a path.
type param struct {
	flag, help string
	member     string // default: as the flag
	yes        bool   // it takes no value
}

// asks makes the command of a request: it is sent once, and its answer is printed.
func asks[T any](q request[T]) func(*command) {
	return func(c *command) {
		c.personFlags()
		c.ids = q.ids
		query := c.queryFlags(q.page, q.query)
		body := func([]string) (any, error) { return nil, nil }
		if q.body != nil {
			body = q.body(c)
		}
		c.answer = func(args []string) (a answer, err error) {
			in, err := body(args)
			if err != nil {
				return a, err
			}
			path := q.path
			if len(args) > 0 {
				path = strings.Replace(path, "{}", url.PathEscape(args[0]), 1)
			}
			var raw json.RawMessage
			if err := c.ask(q.method, path+query(), in, &raw); err != nil {
				return a, err
			}
			var got T
			var next struct{ Cursor string }
			if err := json.Unmarshal(raw, &got); err != nil {
				return a, malformed(err)
			}
			_ = json.Unmarshal(raw, &next) // it is an object, or has no cursor
			a = answer{data: raw, text: q.text(args, got), none: q.none, note: nextPage(next.Cursor)}
			if q.note != nil {
				a.note += q.note(got)
			}
			return a, nil
		}
	}
}

// shown fills in a template with an answer.
func shown[T any](name string) func([]string, T) string {
	return func(_ []string, got T) string { return render(name, got) }
}

// ask sends a request to the gateway, and reads its answer.
func (c *command) ask(method, path string, body, into any) error {
	g, err := c.client()
	if err != nil {
		return err
	}
	if strings.HasPrefix(path, approvalsPath) {
		g.Key = c.inPerson(g.Key)
	}
	return g.Ask(c.Context(), method, path, body, into)
}

func (c *command) get(path string, into any) error { return c.ask(http.MethodGet, path, nil, into) }

func (c *command) post(path string, body, into any) error {
	return c.ask(http.MethodPost, path, body, into)
}

// queryFlags declares flags that become parameters of a path, and those of a page of a list.
func (c *command) queryFlags(page bool, params []param) (query func() string) {
	if page {
		params = append([]param{{flag: "after", help: "continue after this cursor"}}, params...)
	}
	limit := 0
	if page {
		c.Flags().IntVar(&limit, "limit", 0, "maximum number of entries, 1 to 100 (default 20)")
	}
	for _, p := range params {
		if p.yes {
			c.Flags().Bool(p.flag, false, p.help)
		} else {
			c.Flags().String(p.flag, "", p.help)
		}
	}
	return func() string {
		q := url.Values{}
		if limit != 0 {
			q.Set("limit", strconv.Itoa(limit))
		}
		for _, p := range params {
			if f := c.Flags().Lookup(p.flag); f.Changed {
				q.Set(cmp.Or(p.member, p.flag), f.Value.String())
			}
		}
		if len(q) == 0 {
			return ""
		}
		return "?" + q.Encode()
	}
}

// nextPage is the hint how to continue.
func nextPage(cursor string) string {
	if cursor == "" {
		return ""
	}
	return "more: --after " + cursor + "\n"
}

func mcpCommand(c *command) {
	c.personFlags()
	c.skillKeyFlag()
	c.run = func([]string) error {
		to, err := c.client()
		if err != nil {
			return err
		}
		return to.Bridge(c.Context(), c.std.In, c.std.Out)
	}
}
