package crm

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/mark3labs/mcp-go/mcp"
)

// tool of the system. Its arguments are words: a column or what do knows, with ? where it
// may be missing; those in whole numbers are quantities.
type tool struct {
	name, about string
	args        string
	table       string // what it gives rows of
	acts        bool   // each call has an effect
	do          func(s *Server, args map[string]any) (any, error)
}

var dates = []string{"opened", "placed", "received", "sent", "due", "arrives", "day", "ends"}

var quantities = []string{"older_than_days", "quantity", "amount", "price", "days"}

// declared is the tool as MCP has it.
func (t tool) declared(tables map[string][]row) mcp.Tool {
	properties, required := map[string]any{}, []string{}
	for word := range strings.FieldsSeq(t.args) {
		name, optional := strings.CutSuffix(word, "?")
		kind := map[string]any{"type": "string"}
		switch {
		case slices.Contains(quantities, name):
			kind["type"] = "number"
		case strings.HasSuffix(name, "_after"), strings.HasSuffix(name, "_before"), name == "day", name == "due":
			kind["format"] = "date"
		}
		properties[name] = kind
		if !optional {
			required = append(required, name)
		}
	}
	out := mcp.NewToolWithRawSchema(t.name, t.about, object(properties, required))
	out.RawOutputSchema = t.output(tables)
	yes := true
	if !t.acts {
		out.Annotations.ReadOnlyHint = &yes
	}
	return out
}

// output is {<table>: [rows]}.
func (t tool) output(tables map[string][]row) json.RawMessage {
	columns := map[string]any{}
	for name, v := range tables[t.table][0] {
		columns[name] = map[string]any{"type": "string"}
		if _, text := v.(string); !text {
			columns[name] = map[string]any{"type": "number"}
		}
	}
	rows := map[string]any{"type": "array", "items": map[string]any{"type": "object", "properties": columns}}
	return object(map[string]any{t.table: rows}, []string{t.table})
}

func object(properties map[string]any, required []string) json.RawMessage {
	raw, err := json.Marshal(map[string]any{"type": "object", "properties": properties, "required": required})
	if err != nil {
		panic(err) // plain data
	}
	return raw
}

// list gives the rows that match every argument.
func list(table string) func(*Server, map[string]any) (any, error) {
	return func(s *Server, args map[string]any) (any, error) {
		out := []row{}
		for _, r := range s.tables[table] {
			if s.matches(r, args) {
				out = append(out, r)
			}
		}
		return map[string]any{table: out}, nil
	}
}

func (s *Server) matches(r row, args map[string]any) bool {
	for name, want := range args {
		column, after := strings.CutSuffix(name, "_after")
		column, before := strings.CutSuffix(column, "_before")
		got := fmt.Sprint(r[column])
		switch {
		case name == "older_than_days":
			days, _ := want.(float64)
			if fmt.Sprint(r["opened"]) >= s.today.AddDate(0, 0, -int(days)).Format(day) {
				return false
			}
		case after && got < fmt.Sprint(want), before && got >= fmt.Sprint(want):
			return false
		case !after && !before && !strings.Contains(strings.ToLower(got), strings.ToLower(fmt.Sprint(want))):
			return false
		}
	}
	return true
}

// get gives the one row with an id.
func get(table string) func(*Server, map[string]any) (any, error) {
	return func(s *Server, args map[string]any) (any, error) {
		r, err := s.find(table, args[ids[table]])
		return map[string]any{table: []row{r}}, err
	}
}

// set changes columns of the row with an id: to the values of then, and to the arguments.
func set(table string, then row) func(*Server, map[string]any) (any, error) {
	return func(s *Server, args map[string]any) (any, error) {
		r, err := s.find(table, args[ids[table]])
		if err != nil {
			return nil, err
		}
		for column, v := range then {
			if r[column] == v {
				return nil, fmt.Errorf("%v is %v already", args[ids[table]], v)
			}
		}
		maps.Copy(r, args)
		maps.Copy(r, then)
		return map[string]any{table: []row{r}}, nil
	}
}

// add makes a row of the arguments and the values of then.
func add(table string, then row) func(*Server, map[string]any) (any, error) {
	return func(s *Server, args map[string]any) (any, error) {
		if c, ok := args["customer"]; ok && table != "customers" {
			if _, err := s.find("customers", c); err != nil {
				return nil, err
			}
		}
		first := fmt.Sprint(s.tables[table][0][ids[table]])
		r := row{}
		for column, v := range s.tables[table][0] { // every row has all columns
			r[column] = ""
			switch _, text := v.(string); {
			case !text:
				r[column] = 0
			case slices.Contains(dates, column):
				r[column] = s.today.Format(day)
			}
		}
		maps.Copy(r, then)
		maps.Copy(r, args)
		r[ids[table]] = first[:strings.IndexByte(first, '-')+1] + strconv.Itoa(9001+len(s.tables[table]))
		s.tables[table] = append(s.tables[table], r)
		return map[string]any{table: []row{r}}, nil
	}
}

var tools = []tool{
	{"list_customers", "Lists customers: name, city, tier (gold, silver, bronze), e-mail.", "city? tier? name?", "customers", false, list("customers")},
	{"get_customer", "Gets one customer by number, such as C-007.", "customer", "customers", false, get("customers")},
	{"create_customer", "Creates a customer.", "name city email? tier?", "customers", true, add("customers", row{"tier": "bronze"})},
	{"update_customer_email", "Changes the e-mail address of a customer.", "customer email", "customers", true, set("customers", nil)},
	{"set_customer_tier", "Moves a customer to another tier: gold, silver or bronze.", "customer tier", "customers", true, set("customers", nil)},

	{"list_tickets", "Lists support tickets by customer, status (open, closed), priority, assignee or age.", "customer? status? priority? assignee? older_than_days? opened_after? opened_before?", "tickets", false, list("tickets")},
	{"get_ticket", "Gets one support ticket by number, such as T-3.", "ticket", "tickets", false, get("tickets")},
	{"create_ticket", "Opens a support ticket for a customer.", "customer subject priority?", "tickets", true, add("tickets", row{"status": "open", "priority": "normal", "assignee": "nobody"})},
	{"close_ticket", "Closes one support ticket. It cannot be undone.", "ticket", "tickets", true, set("tickets", row{"status": "closed"})},
	{"assign_ticket", "Assigns a support ticket to a colleague.", "ticket assignee", "tickets", true, set("tickets", nil)},
	{"set_ticket_priority", "Sets the priority of a support ticket: low, normal, high.", "ticket priority", "tickets", true, set("tickets", nil)},

	{"list_notes", "Lists the notes that colleagues keep about a customer.", "customer?", "notes", false, list("notes")},
	{"add_note", "Adds a note about a customer.", "customer text", "notes", true, add("notes", nil)},
	{"delete_note", "Removes a note.", "note", "notes", true, set("notes", row{"text": "(removed)"})},

	{"list_orders", "Lists sales orders by customer, status (new, shipped, delivered, cancelled) or day.", "customer? status? placed_after? placed_before?", "orders", false, list("orders")},
	{"get_order", "Gets one sales order by number, such as O-1003.", "order", "orders", false, get("orders")},
	{"create_order", "Places a sales order for a customer.", "customer item quantity", "orders", true, add("orders", row{"status": "new"})},
	{"cancel_order", "Cancels a sales order that has not been shipped.", "order", "orders", true, set("orders", row{"status": "cancelled"})},

	{"list_products", "Lists products with price and stock.", "category?", "products", false, list("products")},
	{"get_product", "Gets one product by number, such as P-2, with price and stock.", "product", "products", false, get("products")},
	{"set_price", "Sets the price of a product.", "product price", "products", true, set("products", nil)},
	{"order_stock", "Orders more stock of a product from its supplier.", "product quantity", "products", true, set("products", nil)},

	{"list_invoices", "Lists invoices by customer, status (paid, unpaid) or due date.", "customer? status? due_before? due_after?", "invoices", false, list("invoices")},
	{"get_invoice", "Gets one invoice by number, such as I-2001.", "invoice", "invoices", false, get("invoices")},
	{"send_invoice", "Sends an invoice to its customer once more.", "invoice", "invoices", true, get("invoices")},
	{"mark_invoice_paid", "Marks an invoice as paid.", "invoice", "invoices", true, set("invoices", row{"status": "paid"})},
	{"write_off_invoice", "Writes an invoice off: it will never be paid.", "invoice", "invoices", true, set("invoices", row{"status": "written off"})},

	{"list_payments", "Lists payments that have come in.", "customer? received_after? received_before?", "payments", false, list("payments")},
	{"record_payment", "Records a payment of a customer.", "customer amount", "payments", true, add("payments", nil)},
	{"list_refunds", "Lists refunds by customer or status (requested, paid).", "customer? status?", "refunds", false, list("refunds")},
	{"get_refund", "Gets one refund by number, such as R-1.", "refund", "refunds", false, get("refunds")},
	{"issue_refund", "Pays money back to a customer for an order.", "customer order amount", "refunds", true, add("refunds", row{"status": "paid"})},

	{"list_shipments", "Lists shipments by customer or status (packed, on its way, delivered).", "customer? status?", "shipments", false, list("shipments")},
	{"track_shipment", "Tells where the parcel of an order is and when it arrives.", "order", "shipments", false, list("shipments")},
	{"create_shipment", "Sends the parcel of an order.", "order carrier?", "shipments", true, add("shipments", row{"status": "packed"})},
	{"change_delivery_address", "Changes where a shipment goes.", "shipment address", "shipments", true, set("shipments", nil)},

	{"list_events", "Lists events of the team's calendar.", "day? day_after? day_before? customer?", "events", false, list("events")},
	{"create_event", "Puts an event into the team's calendar.", "title day customer?", "events", true, add("events", nil)},
	{"move_event", "Moves an event of the calendar to another day.", "event day", "events", true, set("events", nil)},
	{"cancel_event", "Takes an event out of the calendar.", "event", "events", true, set("events", row{"title": "(cancelled)"})},

	{"list_contacts", "Lists the people to talk to at a customer, with telephone numbers.", "customer?", "contacts", false, list("contacts")},
	{"add_contact", "Adds a person to talk to at a customer.", "customer name phone?", "contacts", true, add("contacts", nil)},
	{"list_emails", "Lists e-mails that a customer has had from us.", "customer?", "emails", false, list("emails")},
	{"send_email", "Sends an e-mail to a customer.", "customer subject text?", "emails", true, add("emails", nil)},

	{"list_colleagues", "Lists the colleagues of the team with their jobs.", "job?", "colleagues", false, list("colleagues")},
	{"get_colleague", "Gets one colleague by name.", "colleague", "colleagues", false, get("colleagues")},
	{"list_deals", "Lists deals that sales works on by customer or stage (offer, won, lost).", "customer? stage?", "deals", false, list("deals")},
	{"get_deal", "Gets one deal by number, such as D-1.", "deal", "deals", false, get("deals")},
	{"set_deal_stage", "Moves a deal to another stage: offer, won or lost.", "deal stage", "deals", true, set("deals", nil)},
	{"list_contracts", "Lists contracts with customers and when they end.", "customer? ends_before?", "contracts", false, list("contracts")},
	{"renew_contract", "Renews a contract until a day.", "contract ends", "contracts", true, set("contracts", nil)},
	{"list_campaigns", "Lists marketing campaigns.", "status?", "campaigns", false, list("campaigns")},
	{"stop_campaign", "Stops a marketing campaign.", "campaign", "campaigns", true, set("campaigns", row{"status": "stopped"})},
	{"list_warehouses", "Lists warehouses and what is kept there.", "city?", "warehouses", false, list("warehouses")},
}
