package e2e

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"aob.dev/writ/agentic/model"
	"aob.dev/writ/intents/catalog"
)

// clerk is a language model that works with the CRM as a sensible one does. It knows what
// words mean, and reads all else in the request: the tools that are offered with their
// schemas, the results so far and the date. So it shows what the machinery makes of a
// sensible model, and nothing about models.
type clerk struct {
	failing func(model.Request) error // nil: never
}

// habit is what a clerk does at some words.
type habit struct {
	words    string            // regular expression over the request in lower case
	tools    []string          // to call at once, with what the request names
	with     map[string]string // more arguments
	nextTool string            // to call next for each row of the first result
	join     string            // script over the second result, with the ids of the first
	say      string            // the answer, where nothing need be called
	no       string            // why it cannot be done
}

const owing = `import json
ids = %s
rows = json.load(open(input_file))["invoices"]
out = {}
for r in rows:
    if r["customer"] in ids:
        out[r["customer"]] = out.get(r["customer"], 0) + r["amount"]
print(json.dumps([{"customer": c, "amount": a} for c, a in sorted(out.items())]))
`

// habits, the more special ones first.
var habits = []habit{
	{words: `(delete|remove|lösche) (all|every|alle) (customers|kunden)`, no: "I cannot delete customers: no tool does that. I can show them."},
	{words: `password|passwort|salary|gehalt|drop table|ignore (all|your) (previous )?(rules|instructions)`, no: "I may not do that, and have no tool for it."},
	{words: `book (me )?a flight|weather|wetter|pizza`, no: "I cannot do that: my tools are about customers, tickets, orders and the like."},
	{words: `^(hello|hi|good morning|hallo|guten tag)\b`, say: "Hello! I can help with customers, tickets, orders, invoices and more."},
	{words: `thank|danke`, say: "You are welcome."},
	{words: `who are you|what can you do|was kannst du`, say: "I am the assistant of the team. I can look up and change customers, tickets, orders, invoices and more."},

	{words: `(summari|summary|fasse|zusammenfassung|all about|überblick)`, tools: []string{"get_customer", "list_orders", "list_tickets", "list_notes"}},
	{words: `(owe|schulden).*|customers in .* unpaid|kunden in .* (offene|unbezahlte) rechnungen`, tools: []string{"list_customers", "list_invoices"}, with: map[string]string{"status": "unpaid"}, join: owing},
	{words: `(remind|erinnere).* (overdue|unpaid|überfällig)`, tools: []string{"list_invoices"}, with: map[string]string{"status": "unpaid"}, nextTool: "send_invoice"},
	{words: `(close|schließe).*(older than|älter als)`, tools: []string{"list_tickets"}, with: map[string]string{"status": "open"}, nextTool: "close_ticket"},
	{words: `assign (all|every).*tickets|(weise|gib).* alle .*tickets`, tools: []string{"list_tickets"}, with: map[string]string{"status": "open"}, nextTool: "assign_ticket"},
	{words: `(where|when|wo|wann).*(last|latest|letzte) order`, tools: []string{"list_orders"}, with: map[string]string{"status": "shipped"}, nextTool: "track_shipment"},
	{words: `(harbor hotel|fjord foods|anker bikes).*(order|bought|bestellt)|(order|bought|bestellt).*(harbor hotel|fjord foods|anker bikes)`, tools: []string{"list_customers"}, nextTool: "list_orders"},
	{words: `(harbor hotel|fjord foods|anker bikes).*(talk to|call|phone|anrufen)|(talk to|call|phone).*(harbor hotel|fjord foods|anker bikes)`, tools: []string{"list_customers"}, nextTool: "list_contacts"},

	{words: `(close|schließe|is done|kann zu|erledigt).*\bt-\d+|\bt-\d+.*(close|schließ|is done|kann zu|erledigt)`, tools: []string{"close_ticket"}},
	{words: `(urgent|priority|dringend|priorität).*\bt-\d+|\bt-\d+.*(urgent|priority|dringend|priorität)`, tools: []string{"set_ticket_priority"}},
	{words: `(assign|give|weise|gib).*\bt-\d+|\bt-\d+.*(zuweisen)`, tools: []string{"assign_ticket"}},
	{words: `(open|create) a (new )?ticket|neues ticket|ticket.*(anlegen|aufmachen)`, tools: []string{"create_ticket"}},
	{words: `\bt-\d+`, tools: []string{"get_ticket"}},
	{words: `tickets?.*(closed|geschlossen)|(closed|geschlossene).*tickets?`, tools: []string{"list_tickets"}, with: map[string]string{"status": "closed"}},
	{words: `ticket|complain|beschwer`, tools: []string{"list_tickets"}, with: map[string]string{"status": "open"}},

	{words: `(cancel|stop|storniere).*\bo-\d+`, tools: []string{"cancel_order"}},
	{words: `(refund|pay back|erstatte).*\bo-\d+`, tools: []string{"issue_refund"}},
	{words: `(where|when|track|wo |wann|arrive).*\bo-\d+|\bo-\d+.*(arrive|ankommen)`, tools: []string{"track_shipment"}},
	{words: `(place an order|order \d+|bestelle \d+)`, tools: []string{"create_order"}},
	{words: `\bo-\d+`, tools: []string{"get_order"}},
	{words: `refund|erstattung`, tools: []string{"list_refunds"}},
	{words: `(on its way|on their way|under way|unterwegs)`, tools: []string{"list_shipments"}, with: map[string]string{"status": "on its way"}},

	{words: `\bi-\d+.*(paid|bezahlt)`, tools: []string{"mark_invoice_paid"}},
	{words: `(resend|send|schicke).*\bi-\d+|\bi-\d+.*(again|noch einmal)`, tools: []string{"send_invoice"}},
	{words: `\bi-\d+`, tools: []string{"get_invoice"}},
	{words: `overdue|unpaid|überfällig|unbezahlt|outstanding`, tools: []string{"list_invoices"}, with: map[string]string{"status": "unpaid"}},
	{words: `invoice|rechnung`, tools: []string{"list_invoices"}},
	{words: `payment|zahlung|money.*(come|came) in`, tools: []string{"list_payments"}},

	{words: `(note|notiere|merke).*("|„)`, tools: []string{"add_note"}},
	{words: `notes?\b|notizen`, tools: []string{"list_notes"}},
	{words: `(price|preis).*\d+ (euro|€)`, tools: []string{"set_price"}},
	{words: `(stock|price|cost|lager|preis|kostet).*\bp-\d+|\bp-\d+.*(stock|lager|price|cost|kostet)`, tools: []string{"get_product"}},
	{words: `products?|produkte|sell|verkaufen wir`, tools: []string{"list_products"}},
	{words: `order|bought|purchase|bestell|gekauft`, tools: []string{"list_orders"}},

	{words: `(put|add|enter|trage|plan).*(calendar|kalender|meeting|termin)`, tools: []string{"create_event"}},
	{words: `(move|verschiebe).*\be-\d+`, tools: []string{"move_event"}},
	{words: `calendar|kalender|happening|meeting|termin`, tools: []string{"list_events"}},
	{words: `(e-?mail).*("|„)|write to`, tools: []string{"send_email"}},
	{words: `phone|call|talk to|telefon|contact|ansprechpartner`, tools: []string{"list_contacts"}},
	{words: `contracts?|verträge`, tools: []string{"list_contracts"}},
	{words: `deals?\b`, tools: []string{"list_deals"}, with: map[string]string{"stage": "offer"}},
	{words: `(works|work) in|colleague|kollegen|team`, tools: []string{"list_colleagues"}},
	{words: `campaign|kampagne`, tools: []string{"list_campaigns"}, with: map[string]string{"status": "running"}},
	{words: `(make|move|mache).*\bc-\d+.*(gold|silver|bronze)`, tools: []string{"set_customer_tier"}},
	{words: `\bc-\d+`, tools: []string{"get_customer"}},
	{words: `customers?|kunden`, tools: []string{"list_customers"}},
}

func (*clerk) Name() string { return "test:clerk" }

func (c *clerk) Respond(_ context.Context, req model.Request, _ func(model.Event)) (*model.Response, error) {
	if c.failing != nil {
		if err := c.failing(req); err != nil {
			return nil, err
		}
	}
	task := taskOf(req)
	if whole := blockOf[string](req, "Request"); whole != "" {
		task = whole
	}
	offers := func(name string) bool { return offered(req, name) != nil }
	switch {
	case offers("plan"):
		return c.plan(req, task), nil
	case len(req.Tools) == 0:
		return &model.Response{Text: composed(req)}, nil
	case offers("write_memory"):
		return c.work(req, task, func(text string) *model.Response {
			args := map[string]any{"data": text}
			if strings.Contains(string(offered(req, "write_memory").Schema), `"answer"`) {
				args["answer"] = text
			}
			return replying(req, call("write_memory", marshalled(args)))
		}), nil
	}
	return c.work(req, task, func(text string) *model.Response { return &model.Response{Text: text} }), nil
}

// offered is a tool of the request by the name that its server gives it.
func offered(req model.Request, name string) *model.Tool {
	for i, t := range req.Tools {
		if t.Name == name || strings.HasSuffix(t.Name, "__"+name) {
			return &req.Tools[i]
		}
	}
	return nil
}

func replying(req model.Request, calls ...model.Call) *model.Response {
	for i := range calls {
		calls[i].ID = fmt.Sprintf("call_%d_%d", len(req.Messages), i)
	}
	return &model.Response{Calls: calls}
}

func habitOf(task string) habit {
	for _, h := range habits {
		if regexp.MustCompile(h.words).MatchString(strings.ToLower(task)) {
			return h
		}
	}
	return habit{no: "I do not know how to do that."}
}

// plannable is a skill as a planner's model reads it.
type plannable struct {
	catalog.SkillHit
	Input json.RawMessage `json:"input_schema"`
}

// offeredSkills are the skills that a plan may name: tools, those described, and those named.
func offeredSkills(req model.Request) (out []plannable) {
	for _, t := range req.Tools {
		if !slices.Contains([]string{"exec_python", "find_relevant_skills", "load_skill", "plan"}, t.Name) {
			out = append(out, plannable{SkillHit: catalog.SkillHit{Name: t.Name}})
		}
	}
	out = append(out, blockOf[[]plannable](req, "Skills")...)
	for _, name := range blockOf[[]string](req, "More skills") {
		out = append(out, plannable{SkillHit: catalog.SkillHit{Name: name}})
	}
	return out
}

// plan answers, refuses, or calls the tools that it has. If it has not all that it needs, one step
// does all of it; that step begins with the call, if there is only one.
func (c *clerk) plan(req model.Request, task string) *model.Response {
	h := habitOf(task)
	in, _ := planningOf(req)
	switch {
	case in.Failed != nil:
		return replying(req, infeasible(in.Failed.Reason))
	case h.say != "":
		return &model.Response{Text: h.say}
	case h.no != "":
		return replying(req, infeasible(h.no))
	}
	needed := slices.Clone(h.tools)
	if h.nextTool != "" {
		needed = append(needed, h.nextTool)
	}
	if !slices.ContainsFunc(needed, func(name string) bool { return offered(req, name) == nil }) {
		return c.work(req, task, func(text string) *model.Response { return &model.Response{Text: text} })
	}
	skills := offeredSkills(req)
	var calls []map[string]any
	for i, name := range needed {
		at := slices.IndexFunc(skills, func(s plannable) bool { return s.Name == name || strings.HasSuffix(s.Name, "."+name) })
		if at < 0 {
			return replying(req, infeasible("There is no tool for that here."))
		}
		needed[i] = skills[at].Name
		if skills[at].Input != nil && len(needed) == 1 {
			req.Tools = append(slices.Clone(req.Tools), model.Tool{Name: name, Schema: skills[at].Input})
			calls = append(calls, map[string]any{"step": in.FirstStep, "skill": needed[i], "input": json.RawMessage(argued(req, name, mentioned(req, task, h), nil).Arguments)})
		}
	}
	one := step(in.FirstStep, task, "", 0, "string")
	if one.Skills = needed; h.join != "" {
		one.ReturnSpec.Shape = "array<{customer: string, amount: number}>"
	}
	args := map[string]any{"steps": []catalog.PlanStep{one}}
	if calls != nil {
		args["calls"] = calls
	}
	return replying(req, call("plan", marshalled(args)))
}

// work makes the calls of the habit, with names from the request and the results.
func (c *clerk) work(req model.Request, task string, finish func(string) *model.Response) *model.Response {
	h, done := habitOf(task), exchanges(req)
	if h.say != "" || h.no != "" {
		return finish(h.say + h.no)
	}
	named := mentioned(req, task, h)
	first := done[:min(len(done), len(h.tools))]
	if len(first) == 0 {
		var calls []model.Call
		if h.nextTool == "assign_ticket" {
			delete(named, "assignee") // who will have them
		}
		for _, name := range h.tools {
			calls = append(calls, argued(req, name, named, nil))
		}
		return replying(req, calls...)
	}
	rows := rowsOf(first[0])
	switch {
	case h.join != "" && len(done) == len(first):
		var ids []any
		for _, r := range rows {
			ids = append(ids, r["customer"])
		}
		return replying(req, call("exec_python", marshalled(map[string]string{"from": first[1].label(), "script": fmt.Sprintf(h.join, marshalled(ids))})))
	case h.join != "" && offered(req, "write_memory") == nil:
		return finish(done[len(done)-1].result)
	case h.join != "":
		return replying(req, write(done[len(done)-1].label()))
	}
	last := done[len(first):]
	if h.nextTool != "" {
		var calls []model.Call
		for _, r := range rows {
			next := argued(req, h.nextTool, named, r)
			if !slices.ContainsFunc(last, func(x exchange) bool { return x.call.Arguments == next.Arguments }) {
				calls = append(calls, next)
			}
		}
		if len(calls) > 0 {
			return replying(req, calls...)
		}
	}
	if len(last) == 0 {
		last = first
	}
	return finish(callResults(last))
}

// callResults is what became of calls.
func callResults(last []exchange) string {
	var b strings.Builder
	good, failure := 0, ""
	for _, x := range last {
		if wrong := x.error() + strings.Join(x.violations(), "; "); wrong != "" {
			failure = wrong
			continue
		}
		good++
		for _, r := range rowsOf(x) {
			b.WriteString("\n-")
			for _, column := range slices.Sorted(maps.Keys(r)) {
				fmt.Fprintf(&b, " %s: %v;", column, r[column])
			}
		}
	}
	text := fmt.Sprintf("%d of %d done.", good, len(last))
	if failure != "" {
		text += " The others failed: " + failure
	}
	if b.Len() == 0 {
		return text + " There is nothing to show."
	}
	return text + b.String()
}

// rowsOf a result are its first list.
func rowsOf(x exchange) []map[string]any {
	r := decoded[struct {
		Result map[string][]map[string]any `json:"result"`
	}](x.result).Result
	for _, rows := range r {
		return rows
	}
	return nil
}

// argued is a call with what its schema has a place for.
func argued(req model.Request, name string, named map[string]string, row map[string]any) model.Call {
	t := offered(req, name)
	if t == nil {
		return call(name, "{}")
	}
	schema := decoded[struct {
		Properties map[string]struct {
			Type string `json:"type"`
		} `json:"properties"`
	}](string(t.Schema))
	args := map[string]any{}
	for p, is := range schema.Properties {
		v := named[p]
		if i := strings.LastIndexByte(p, '_'); v == "" && i >= 0 {
			v = named[p[i:]] // _after, _before
		}
		if from, ok := row[p].(string); ok && v == "" && strings.Contains(from, "-") {
			v = from // an id
		}
		if v == "" {
			continue
		}
		if args[p] = v; is.Type == "number" {
			args[p], _ = strconv.ParseFloat(v, 64)
		}
	}
	return call(t.Name, marshalled(args))
}

var mentions = map[string]*regexp.Regexp{
	"customer": regexp.MustCompile(`C-\d+`), "ticket": regexp.MustCompile(`T-\d+`), "order": regexp.MustCompile(`O-\d+`), "invoice": regexp.MustCompile(`I-\d+`),
	"product": regexp.MustCompile(`P-\d+`), "event": regexp.MustCompile(`E-\d+`), "deal": regexp.MustCompile(`D-\d+`),
	"city": regexp.MustCompile(`Oslo|Bergen|Berlin|Hamburg`), "tier": regexp.MustCompile(`gold|silver|bronze`), "priority": regexp.MustCompile(`high|low`),
	"assignee": regexp.MustCompile(`Ben\b|Eva\b|Mia\b`), "name": regexp.MustCompile(`Harbor Hotel|Fjord Foods|Anker Bikes`), "job": regexp.MustCompile(`support|sales`),
	"older_than_days": regexp.MustCompile(`(\d+) (?:days|Tage)`), "quoted": regexp.MustCompile(`["„]([^"“]+)["“]`), "category": regexp.MustCompile(`lamp|tool|bike`),
	"amount": regexp.MustCompile(`(\d+) (?:euro|Euro|€)`), "quantity": regexp.MustCompile(`(?:rder|estelle) (\d+)`), "item": regexp.MustCompile(`desk lamp|hammer|drill`),
	"day": regexp.MustCompile(`\d{4}-\d\d-\d\d`),
}

// mentioned is what a request names, by the name of the argument.
func mentioned(req model.Request, task string, h habit) map[string]string {
	out := map[string]string{}
	for name, x := range mentions {
		if m := x.FindStringSubmatch(task); m != nil {
			out[name] = m[len(m)-1]
		}
	}
	for _, name := range []string{"text", "subject", "title"} {
		out[name] = out["quoted"]
	}
	out["price"] = out["amount"]
	lower := strings.ToLower(task)
	if strings.Contains(lower, "urgent") || strings.Contains(lower, "dringend") {
		out["priority"] = "high"
	}
	date := ""
	for _, m := range req.Messages {
		date = cmp.Or(date, strings.TrimPrefix(m.Note, "Date: "))
	}
	date, _, _ = strings.Cut(date, "\n")
	today, _ := time.Parse("Monday, 2006-01-02", date)
	on := func(days int) string { return today.AddDate(0, 0, days).Format(time.DateOnly) }
	for words, at := range map[string][3]string{ // day, after, before
		"today": {on(0), on(0), on(1)}, "heute": {on(0), on(0), on(1)}, "yesterday": {on(-1), on(-1), on(0)}, "gestern": {on(-1), on(-1), on(0)},
		"tomorrow": {on(1), "", ""}, "morgen": {on(1), "", ""}, "last week": {"", on(-7), ""}, "letzte woche": {"", on(-7), ""}, "last five days": {"", on(-5), ""},
		"overdue": {"", "", on(0)}, "überfällig": {"", "", on(0)}, "next month": {"", "", on(31)}, "nächsten monat": {"", "", on(31)},
	} {
		if strings.Contains(lower, words) {
			out["day"], out["_after"], out["_before"] = at[0], at[1], at[2]
		}
	}
	maps.Copy(out, h.with)
	return out
}

// composed is the answer from results, or from a failure with all its details.
func composed(req model.Request) string {
	text := "Here is what I found."
	if failure := blockOf[json.RawMessage](req, "Failure"); len(failure) > 0 {
		return "I could not do all of it: " + string(failure)
	}
	for _, r := range blockOf[[]struct {
		Result json.RawMessage `json:"result"`
	}](req, "Results") {
		text += "\n" + string(r.Result)
	}
	return text
}

var _ model.Model = (*clerk)(nil)
