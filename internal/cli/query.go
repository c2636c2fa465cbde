package cli

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
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
		body := map[string]any{"mode": args[0], "query": args[1], "session_id": *session, "limit": *limit, "after": *after, "by_day": *byDay, "whole_tenant": *wholeTenant}
		for name, at := range map[string]time.Time{"since": since, "until": until} {
			if !at.IsZero() {
				body[name] = intents.FormatTime(at)
			}
		}
		at, err := c.client()
		if err != nil {
			return answer{}, err
		}
		var raw json.RawMessage
		if err := at.Post(c.Context(), "/query/", body, &raw); err != nil {
			return answer{}, err
		}
		var found queryFound
		err = json.Unmarshal(raw, &found)
		return answer{data: raw, note: nextPage(found.Cursor), text: aligned(found.print)}, err
	}
}

// queryFound is what any query found: one of these members, and for health two.
type queryFound struct {
	Data     json.RawMessage       `json:"data"`
	Hits     []catalog.MemoryHit   `json:"hits"`
	Usage    []catalog.UsageRow    `json:"usage"`
	Plans    []catalog.PlansHealth `json:"plans"`
	Skills   []catalog.SkillHealth `json:"skills"`
	Messages []catalog.Message     `json:"messages"`
	Cursor   string                `json:"cursor"`
	Schemas  []struct {
		Name, Kind, Content string
	} `json:"schemas"`
}

func (f queryFound) print(t io.Writer) {
	if len(f.Data) > 0 {
		fmt.Fprintln(t, printable(string(f.Data)))
	}
	for _, h := range f.Hits {
		fmt.Fprintf(t, "%s\t%s\n", printable(h.Key), oneLine(h.Text, 100))
	}
	if len(f.Usage) > 0 {
		fmt.Fprintln(t, "DAY\tAGENT\tMODEL\tTURNS\tINPUT\tOUTPUT\tLATENCY\tCOST")
	}
	for _, u := range f.Usage {
		cost := "–"
		if u.Cost != nil {
			cost = fmt.Sprintf("%.4f", *u.Cost)
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%d\t%d\t%d\t%.1f s\t%s\n", cmp.Or(u.Day, "–"), printable(u.Agent), printable(u.Model), u.Turns, u.InputTokens, u.OutputTokens, float64(u.AvgLatencyMS)/1000, cost)
	}
	for _, p := range f.Plans {
		fmt.Fprintf(t, "plans with %s\t%d\t%d failed\t%.2f replans each\t%d used up all\n", printable(orDash(p.Skills)), p.Plans, p.Failed, p.AvgReplans, p.Exhausted)
	}
	for _, s := range f.Skills {
		fmt.Fprintf(t, "calls of %s\t%d\t%d failed\n", printable(s.Skill), s.Calls, s.Failed)
	}
	for _, m := range f.Messages {
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\n", m.CreatedAt.UTC().Format(time.RFC3339), printable(m.SessionID), m.Role, oneLine(m.Content, 80))
	}
	for _, s := range f.Schemas {
		fmt.Fprintf(t, "%s\t%s\t%s\n", printable(s.Name), printable(s.Kind), oneLine(s.Content, 80))
	}
}
