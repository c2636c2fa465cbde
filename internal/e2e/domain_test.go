package e2e

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"aob.dev/writ/intents/catalog"
)

// The second domain of these tests. No code but this file and its neighbours knows of it: the
// system gets only the manifests.

type outlet struct {
	OutletID string  `json:"outlet_id"`
	Name     string  `json:"name"`
	City     string  `json:"city"`
	Status   string  `json:"status"`
	Revenue  float64 `json:"revenue"`
	Seats    int     `json:"seats"`
}

type sale struct {
	OrderID  int     `json:"order_id"`
	OutletID string  `json:"outlet_id"`
	Amount   float64 `json:"amount"`
	Paid     bool    `json:"paid"`
	PlacedAt string  `json:"placed_at"`
	Note     string  `json:"note"`
}

var outlets = []outlet{
	{"o-1", "Mitte", "Berlin", "open", 120.5, 40},
	{"o-2", "Altona", "Hamburg", "closed", 310, 22},
	{"o-3", "Kreuzberg", "Berlin", "open", 95.25, 60},
	{"o-4", "Schwabing", "Munich", "open", 311, 35},
	{"o-5", "Wedding", "Berlin", "closed", 50, 12},
	{"o-6", "Sankt Pauli", "Hamburg", "open", 205.1, 48},
	{"o-7", "Bogenhausen", "Munich", "closed", 77, 18},
}

// deep stands in the last intent only, far behind every sample.
const deep = "marker-8c1f-deep-in-the-large-response"

// sales are six hundred orders with many equal amounts, over 90 KB as JSON.
var sales = func() []sale {
	var out []sale
	for i := range 600 {
		out = append(out, sale{
			OrderID: 1000 + i, OutletID: outlets[(i*i+i/7)%len(outlets)].OutletID, Amount: float64((i*37)%113)*1.25 + 2.5,
			Paid: i%3 != 0, PlacedAt: fmt.Sprintf("2026-%02d-%02dT10:00:00Z", 1+i/60, 1+i%28), Note: fmt.Sprintf("table %d, as usual, nothing special", i%19),
		})
	}
	last := &out[len(out)-1]
	last.Note, last.OutletID, last.Amount = deep, "o-7", 60 // no answer names it
	return out
}()

const outletSchema = `{"type":"object","required":["outlets"],"properties":{"outlets":{"type":"array","description":"One entry for each outlet.","items":{"type":"object",
"required":["outlet_id","name","city","status","revenue","seats"],"properties":{
"outlet_id":{"type":"string","description":"Identifier of the outlet."},
"name":{"type":"string","description":"What the outlet is called."},
"city":{"type":"string","description":"City in which the outlet is."},
"status":{"type":"string","enum":["open","closed"]},
"revenue":{"type":"number","description":"Turnover of last month, in euros."},
"seats":{"type":"integer","description":"How many guests it seats."}}}}}}`

const saleSchema = `{"type":"object","required":["orders"],"properties":{"orders":{"type":"array","description":"One entry for each order.","items":{"type":"object",
"required":["order_id","outlet_id","amount","paid","placed_at","note"],"properties":{
"order_id":{"type":"integer","description":"Number of the order."},
"outlet_id":{"type":"string","description":"Identifier of an outlet."},
"amount":{"type":"number","description":"What was paid, in euros."},
"paid":{"type":"boolean"},
"placed_at":{"type":"string","format":"date-time","description":"When it was placed."},
"note":{"type":"string","description":"What the waiter wrote down."}}}}}}`

func salesOf(id string) []sale {
	return slices.DeleteFunc(slices.Clone(sales), func(s sale) bool { return s.OutletID != id })
}

func serveShop(t *testing.T) *skillServer {
	t.Helper()
	return serveSkills(t,
		skill{
			name: "outlet_list", about: "Lists the outlets of the chain with their city, status, revenue and seats.", output: outletSchema,
			do: always(map[string]any{"outlets": outlets}),
		},
		skill{
			name: "order_list", about: "Every order of the chain: its outlet, amount and when it was placed.", output: saleSchema,
			do: always(map[string]any{"orders": sales}),
		},
		skill{
			name: "orders_for_outlet", about: "The orders of one outlet.", output: saleSchema,
			input: `{"type":"object","required":["outlet_id"],"properties":{"outlet_id":{"type":"string","description":"Identifier of the outlet."}},"additionalProperties":false}`,
			do: func(input json.RawMessage) (any, error) {
				var in struct {
					OutletID string `json:"outlet_id"`
				}
				if err := json.Unmarshal(input, &in); err != nil || in.OutletID == "" {
					return nil, errors.New("outlet_id is required")
				}
				return map[string]any{"orders": salesOf(in.OutletID)}, nil
			},
		},
	)
}

// columns of a result's row.
type columns map[string]any

func rows[R any](list []R, column func(R) columns) []columns {
	out := []columns{}
	for _, r := range list {
		out = append(out, column(r))
	}
	return out
}

func where[R any](list []R, keep func(R) bool) []R {
	return slices.DeleteFunc(slices.Clone(list), func(r R) bool { return !keep(r) })
}

func sorted[R any](list []R, by func(a, b R) int) []R {
	list = slices.Clone(list)
	slices.SortStableFunc(list, by)
	return list
}

func nameRevenue(o outlet) columns { return columns{"name": o.Name, "revenue": o.Revenue} }
func whole(o outlet) columns {
	return columns{"outlet_id": o.OutletID, "name": o.Name, "city": o.City, "status": o.Status, "revenue": o.Revenue, "seats": o.Seats}
}

func wholeSale(s sale) columns {
	return columns{"order_id": s.OrderID, "outlet_id": s.OutletID, "amount": s.Amount, "paid": s.Paid, "placed_at": s.PlacedAt, "note": s.Note}
}

// question is a task with the answer that the test computed, and the skills
// that lead to it.
type question struct {
	task   string
	skills string // of the steps, by their ids
	want   any
}

func questions() []question {
	return []question{
		{"How many outlets are open?", "skills-1.outlet_list", columns{"count": len(where(outlets, func(o outlet) bool { return o.Status == "open" }))}},
		{"List the outlets in Berlin", "skills-1.outlet_list", rows(where(outlets, func(o outlet) bool { return o.City == "Berlin" }), whole)},
		{"the 3 outlets with the highest revenue", "skills-1.outlet_list", rows(sorted(outlets, func(a, b outlet) int { return cmp.Compare(b.Revenue, a.Revenue) })[:3], nameRevenue)},
		{"List the outlets sorted by seats in ascending order", "skills-1.outlet_list", rows(sorted(outlets, func(a, b outlet) int { return cmp.Compare(a.Seats, b.Seats) }), whole)},
		{"How many orders are not paid?", "skills-1.order_list", columns{"count": len(where(sales, func(s sale) bool { return !s.Paid }))}},
		{"Show the five smallest orders", "skills-1.order_list", rows(sorted(sales, func(a, b sale) int { return cmp.Compare(a.Amount, b.Amount) })[:5], func(s sale) columns { return columns{"order_id": s.OrderID, "amount": s.Amount} })},
		{"How many outlets in Berlin are open?", "skills-1.outlet_list", columns{"count": len(where(outlets, func(o outlet) bool { return o.City == "Berlin" && o.Status == "open" }))}},
		{"List the orders over 140 euros", "skills-1.order_list", rows(where(sales, func(s sale) bool { return s.Amount > 140 }), wholeSale)},
	}
}

func planned(p catalog.PlanView) string {
	var names []string
	for _, s := range p.Steps {
		names = append(names, s.Skills...)
	}
	return strings.Join(names, " ")
}
