package crm

import (
	"fmt"
	"time"
)

const day = "2006-01-02"

// ids are the columns with the ids of rows.
var ids = map[string]string{
	"customers": "customer", "tickets": "ticket", "notes": "note", "orders": "order", "products": "product", "invoices": "invoice", "payments": "payment",
	"refunds": "refund", "shipments": "shipment", "events": "event", "contacts": "contact", "emails": "mail", "colleagues": "colleague", "deals": "deal",
	"contracts": "contract", "campaigns": "campaign", "warehouses": "warehouse",
}

// OldTickets is how many open tickets are older than ten days.
const OldTickets = 16

// records are all rows at the beginning.
func records(today time.Time) map[string][]row {
	ago := func(days int) string { return today.AddDate(0, 0, -days).Format(day) }
	customer := func(n int) string { return fmt.Sprintf("C-%03d", n) }
	t := map[string][]row{}
	for i, c := range [][4]string{
		{"Anker Bikes", "Oslo", "gold", "anker"},
		{"Bolt & Sons", "Bergen", "silver", "bolt"},
		{"Cafe Mitte", "Berlin", "bronze", "cafe"},
		{"Delta Tools", "Oslo", "silver", "delta"},
		{"Elbe Print", "Hamburg", "gold", "elbe"},
		{"Fjord Foods", "Bergen", "bronze", "fjord"},
		{"Gärtnerei Grün", "Berlin", "silver", "gruen"},
		{"Harbor Hotel", "Hamburg", "gold", "harbor"},
		{"Iris Optik", "Berlin", "bronze", "iris"},
		{"Jensen Law", "Oslo", "bronze", "jensen"},
		{"Kite School", "Bergen", "silver", "kite"},
		{"Luna Lamps", "Hamburg", "bronze", "luna"},
	} {
		t["customers"] = append(t["customers"], row{"customer": customer(i + 1), "name": c[0], "city": c[1], "tier": c[2], "email": c[3] + "@example.com"})
	}
	subjects := []string{"Parcel did not arrive", "Wrong colour", "Invoice is unclear", "Cannot log in", "Lamp is broken", "Asks for a discount"}
	for i := range 24 {
		opened, status, priority := 11+2*i, "open", []string{"low", "normal", "normal"}[i%3]
		switch {
		case i >= OldTickets && i < 22:
			opened, priority = i-OldTickets, "high" // today and on the five days before
		case i >= 22:
			status = "closed"
		}
		t["tickets"] = append(t["tickets"], row{
			"ticket": fmt.Sprintf("T-%d", i+1), "customer": customer(i%12 + 1), "subject": subjects[i%len(subjects)], "status": status, "priority": priority,
			"assignee": []string{"Ben", "Eva", "nobody"}[i%3], "opened": ago(opened),
		})
	}
	for i := range 18 {
		n, product := i%9+1, i%6
		quantity := i%4 + 1
		total := quantity * prices[product]
		order := fmt.Sprintf("O-%d", 1001+i)
		status := []string{"delivered", "shipped", "new"}[i%3]
		t["orders"] = append(t["orders"], row{"order": order, "customer": customer(n), "item": items[product], "quantity": quantity, "total": total, "status": status, "placed": ago(3 * i)})
		paid := "paid"
		if i%4 == 0 {
			paid = "unpaid"
		}
		t["invoices"] = append(t["invoices"], row{"invoice": fmt.Sprintf("I-%d", 2001+i), "order": order, "customer": customer(n), "amount": total, "status": paid, "due": ago(3*i - 14)})
		if paid == "paid" {
			t["payments"] = append(t["payments"], row{"payment": fmt.Sprintf("Y-%d", 1+i), "customer": customer(n), "amount": total, "received": ago(3*i - 1)})
		}
		if status != "new" {
			state := map[string]string{"delivered": "delivered", "shipped": "on its way"}[status]
			t["shipments"] = append(t["shipments"], row{"shipment": fmt.Sprintf("S-%d", 1+i), "order": order, "customer": customer(n), "status": state, "arrives": ago(3*i - 2), "address": "their office", "carrier": "DHL"})
		}
	}
	for i, item := range items {
		t["products"] = append(t["products"], row{"product": fmt.Sprintf("P-%d", i+1), "name": item, "category": []string{"lamps", "tools", "bikes"}[i%3], "price": prices[i], "stock": 7 * i})
	}
	t["notes"] = []row{
		{"note": "N-1", "customer": "C-007", "text": "Prefers calls in the morning."},
		{"note": "N-2", "customer": "C-001", "text": "Wants a visit in spring."},
		{"note": "N-3", "customer": "C-007", "text": "New manager since May: Ms Blum."},
	}
	t["refunds"] = []row{
		{"refund": "R-1", "customer": "C-003", "order": "O-1003", "amount": 25, "status": "requested"},
		{"refund": "R-2", "customer": "C-007", "order": "O-1007", "amount": 40, "status": "paid"},
	}
	t["events"] = []row{
		{"event": "E-1", "title": "Team meeting", "day": ago(0), "customer": ""},
		{"event": "E-2", "title": "Visit of Harbor Hotel", "day": ago(-1), "customer": "C-008"},
		{"event": "E-3", "title": "Stock taking", "day": ago(-7), "customer": ""},
	}
	t["contacts"] = []row{
		{"contact": "K-1", "customer": "C-007", "name": "Rosa Blum", "phone": "030 555 07"}, {"contact": "K-2", "customer": "C-002", "name": "Per Bolt", "phone": "55 555 02"},
	}
	t["emails"] = []row{{"mail": "M-1", "customer": "C-005", "subject": "Your offer", "text": "Here it is.", "sent": ago(4)}}
	t["colleagues"] = []row{{"colleague": "Ben", "job": "support"}, {"colleague": "Eva", "job": "support"}, {"colleague": "Mia", "job": "sales"}}
	t["deals"] = []row{{"deal": "D-1", "customer": "C-008", "title": "80 lamps", "worth": 4000, "stage": "offer"}, {"deal": "D-2", "customer": "C-005", "title": "Printer carts", "worth": 900, "stage": "won"}}
	t["contracts"] = []row{{"contract": "V-1", "customer": "C-001", "title": "Service", "ends": ago(-20)}, {"contract": "V-2", "customer": "C-008", "title": "Light", "ends": ago(-300)}}
	t["campaigns"] = []row{{"campaign": "A-1", "title": "Winter light", "status": "running"}, {"campaign": "A-2", "title": "Summer bikes", "status": "stopped"}}
	t["warehouses"] = []row{{"warehouse": "W-1", "city": "Hamburg", "keeps": "lamps"}, {"warehouse": "W-2", "city": "Oslo", "keeps": "bikes and tools"}}
	return t
}

var (
	items  = []string{"desk lamp", "hammer", "city bike", "floor lamp", "drill", "cargo bike"}
	prices = []int{40, 25, 600, 120, 150, 2400}
)
