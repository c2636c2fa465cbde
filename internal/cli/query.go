package cli

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
)

func queryCommand(c *command) {
	var since, until time.Time
	c.personFlags()
	c.since(&since, "since", "only what was created at this time or later: RFC 3339, or a duration before now such as 7d")
	c.since(&until, "until", "only what was created before this time")
	limit := c.Flags().Int("limit", 0, "maximum number of entries")
	after := c.Flags().String("after", "", "continue after this cursor")
	session := c.Flags().String("session", "", "session whose memories are read, too")
	byDay := c.Flags().Bool("by-day", false, "usage of each day")
	wholeTenant := c.Flags().Bool("whole-tenant", false, "of all users of the tenant; needs audit:read")
	c.answer = func(args []string) (answer, error) {
		if len(args) == 1 { // MODE QUERY in one argument
			args = strings.SplitN(strings.TrimSpace(args[0]), " ", 2)
		}
		if len(args) < 2 {
			return answer{}, usage(errors.New(`what is asked is missing: writ query "SQL SELECT …", writ query SEARCH TEXT`))
		}
		body := map[string]any{
			"mode": args[0], "query": strings.TrimSpace(args[1]), "session_id": *session, "by_day": *byDay, "whole_tenant": *wholeTenant, "limit": *limit, "after": *after,
		}
		for name, at := range map[string]time.Time{"since": since, "until": until} {
			if !at.IsZero() {
				body[name] = intents.FormatTime(at)
			}
		}
		var raw json.RawMessage
		if err := c.post("/query/", body, &raw); err != nil {
			return answer{}, err
		}
		return queryAnswer(raw)
	}
}

// queryAnswer shows usage and messages as lines, anything else as it came.
func queryAnswer(raw json.RawMessage) (answer, error) {
	var found struct {
		catalog.PlanUsageResult
		catalog.MessageListResult
	}
	if err := json.Unmarshal(raw, &found); err != nil {
		return answer{}, err
	}
	a := answer{data: raw, note: nextPage(found.Cursor)}
	a.text = aligned(func(t io.Writer) {
		for _, u := range found.Usage {
			cost := ""
			if u.Cost != nil {
				cost = fmt.Sprintf("cost %.4f", *u.Cost)
			}
			fmt.Fprintf(t, "%s\t%s\t%s\t%d turns\t%d tokens in\t%d out\t%.1f s each\t%s\n", cmp.Or(u.Day, "–"),
				printable(u.Agent), printable(u.Model), u.Turns, u.InputTokens, u.OutputTokens, float64(u.AvgLatencyMS)/1000, cost)
		}
		for _, m := range found.Messages {
			fmt.Fprintf(t, "%s\t%s\t%s\t%s\n", m.CreatedAt.UTC().Format(time.RFC3339), printable(m.SessionID), m.Role, oneLine(m.Content, 80))
		}
	})
	if found.Usage != nil || found.Messages != nil {
		return a, nil
	}
	var as strings.Builder
	err := printJSON(&as, raw)
	a.text = as.String()
	return a, err
}
