package demo

import (
	"context"
	"errors"
	"io"
	"os"

	"aob.dev/writ/audit"
	"aob.dev/writ/intents"
	"aob.dev/writ/internal/node"
	"aob.dev/writ/state"
	"aob.dev/writ/storage"
)

// Intent is one intent of the record, as the demo prints it.
type Intent struct {
	Position   int64          `json:"position"`
	Type       string         `json:"type"`
	IntentID   string         `json:"intent_id"`
	Role       intents.Role   `json:"role"`
	Code       intents.Code   `json:"code"`
	PolicyIDs  []string       `json:"policy_ids"`
	Status     intents.Status `json:"status,omitempty"`
	DurationMS int64          `json:"duration_ms"`
}

// VerifyReport is the result of the final check: the report of `writ audit replay` on a
// bundle of everything.
type VerifyReport = audit.Report

// Verify exports the whole record as a bundle and verifies the bundle as an auditor would
// who has only the pinned root key: every signature, key, grant, task and Merkle
// proof. It also decides every intent again.
func Verify(ctx context.Context, n *node.Node) (list []Intent, v VerifyReport, err error) {
	a, err := n.Archive(ctx)
	if err != nil {
		return nil, v, err
	}
	defer func() { err = errors.Join(err, a.Close()) }()
	if list, err = intentsOf(ctx, a.Records); err != nil {
		return list, v, err
	}
	f, err := os.CreateTemp("", "writ-demo-*.bundle")
	if err != nil {
		return list, v, err
	}
	defer func() { err = errors.Join(err, f.Close(), os.Remove(f.Name())) }()
	if _, err := audit.Export(ctx, f, a.Source, audit.Selection{}); err != nil {
		return list, v, err
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return list, v, err
	}
	trust := audit.NewTrust(a.Root)
	v, err = audit.Verify(ctx, f, audit.Options{Trust: &trust, Replay: true})
	return list, v, err
}

// intentsOf reads the intents of the record with their outcomes.
func intentsOf(ctx context.Context, records storage.Records) ([]Intent, error) {
	var list []Intent
	at := map[int64]int{} // position to index
	for rec, err := range records.Scan(ctx, 0) {
		if err != nil {
			return list, err
		}
		switch rec.Kind {
		case storage.KindIntent:
			s, err := state.ReadIntent(rec)
			if err != nil {
				return list, err
			}
			at[rec.Position] = len(list)
			list = append(list, Intent{Position: rec.Position, Type: s.Type, IntentID: s.Decision.IntentID, Role: s.Signer, Code: s.Decision.Code, PolicyIDs: s.Decision.PolicyIDs})
		case storage.KindOutcome:
			out, of, err := state.OutcomeOf(rec)
			if err != nil {
				return list, err
			}
			if i, ok := at[of]; ok {
				list[i].Status, list[i].Code, list[i].DurationMS = out.Status, out.Code, out.MS
			}
		case storage.KindRelease, storage.KindTakeover, storage.KindControl:
		}
	}
	return list, nil
}
