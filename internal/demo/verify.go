package demo

import (
	"context"
	"encoding/json"
	"fmt"

	"aob.dev/writ/intents"
	"aob.dev/writ/router"
	"aob.dev/writ/storage"
)

// Order is one order of the record, as the demo prints it.
type Order struct {
	Position   int64          `json:"position"`
	Type       string         `json:"type"`
	IntentID   string         `json:"intent_id"`
	Role       intents.Role   `json:"role"`
	Code       intents.Code   `json:"code"`
	PolicyIDs  []string       `json:"policy_ids"`
	Status     intents.Status `json:"status,omitempty"`
	DurationMS int64          `json:"duration_ms"`
}

// Verified is what the final check found.
type Verified struct {
	OK       bool  `json:"ok"`
	Records  int64 `json:"records"`
	Orders   int   `json:"orders"`
	Receipts int   `json:"receipts"`
}

// Verify folds the journal anew and checks, record by record, what an auditor
// would: each order's signature and grant under the keys that were in force at
// its position, its intent_id, and each receipt against the digests of the
// records that it speaks of.
func Verify(ctx context.Context, records storage.Records, r *router.Router) ([]Order, Verified, error) {
	fold := router.NewDirectory()
	var orders []Order
	var v Verified
	for rec, err := range records.Scan(ctx, 0) {
		if err != nil {
			return orders, v, err
		}
		if rec.Position != v.Records {
			return orders, v, fmt.Errorf("record %d stands at position %d", v.Records, rec.Position)
		}
		v.Records++
		if rec.Kind == storage.KindOrder {
			o, err := verifyOrder(ctx, fold, r, rec)
			if err != nil {
				return orders, v, fmt.Errorf("record %d: %w", rec.Position, err)
			}
			orders = append(orders, o)
			v.Orders++
			if o.Code == intents.OK || o.Status != "" {
				v.Receipts++
			}
		}
		fold.Observe(router.EntryOf(rec))
		if err := fold.Err(); err != nil {
			return orders, v, err
		}
	}
	v.OK = v.Orders > 0 && v.Receipts > 0
	return orders, v, nil
}

func verifyOrder(ctx context.Context, fold *router.Directory, r *router.Router, rec storage.Record) (Order, error) {
	var sealed intents.Sealed
	if err := json.Unmarshal(rec.Parts[storage.PartOrder], &sealed); err != nil {
		return Order{}, err
	}
	u, err := sealed.Open()
	if err != nil {
		return Order{}, err
	}
	e, err := u.Verify(intents.Verifier{Keys: fold.View(), Origin: fold.Origin(), Now: rec.At})
	if err != nil {
		return Order{}, err
	}
	s, err := router.Summarize(rec)
	if err != nil {
		return Order{}, err
	}
	if s.IntentID != e.ID() {
		return Order{}, fmt.Errorf("the record names another intent_id")
	}
	o := Order{Position: rec.Position, Type: e.Type(), IntentID: e.ID(), Role: e.Signer().Role, Code: s.Decision.Code, PolicyIDs: s.Decision.PolicyIDs}
	if s.Decision.Verdict == intents.Deny {
		return o, nil
	}
	a, err := r.Order(ctx, rec.Position)
	if err != nil {
		return o, err
	}
	receipt, err := intents.OpenReceipt(a.Receipt, fold.View())
	if err != nil {
		return o, fmt.Errorf("receipt: %w", err)
	}
	if receipt.IntentID != e.ID() || receipt.Position != rec.Position || receipt.RecordDigest != rec.Digest() {
		return o, fmt.Errorf("the receipt speaks of another record")
	}
	if a.Outcome != nil {
		o.Status, o.Code, o.DurationMS = a.Outcome.Status, a.Outcome.Code, a.Outcome.MS
	}
	return o, nil
}
