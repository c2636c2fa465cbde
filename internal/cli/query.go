package cli

import (
	"encoding/json"
	"errors"
	"net/http"
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
