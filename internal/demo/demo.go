// Package demo shows the whole system doing one job on real data: it starts an
// embedded node and a skill server with a week of earthquakes, asks a question
// through the public API, and then checks all of it: it exports the record as a
// bundle, verifies the bundle offline and decides every intent again.
package demo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"time"

	"aob.dev/writ/agentic/model/offline"
	"aob.dev/writ/audit"
	"aob.dev/writ/bus"
	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/client"
	"aob.dev/writ/internal/datadir"
	"aob.dev/writ/internal/demo/quakes"
	"aob.dev/writ/internal/node"
	"aob.dev/writ/state"
	"aob.dev/writ/storage"
)

// Question of the demo.
const Question = "Which ten places had the strongest earthquakes, and how strong were they?"

// Options of a run.
type Options struct {
	Data      string // data directory to retain; empty: a temporary one, which is removed
	Documents datadir.DocumentsAt
	Log       *slog.Logger
	// Progress receives each step, to show it to people; may be nil.
	Progress func(bus.StatusData)
}

// Row is one line of the answer.
type Row struct {
	Rank      int     `json:"rank"`
	Place     string  `json:"place"`
	Magnitude float64 `json:"magnitude"`
}

// Result of the demo.
type Result struct {
	Question     string           `json:"question"`
	Response     string           `json:"response"`
	Answer       []Row            `json:"answer"`
	Plan         catalog.PlanView `json:"plan"`
	Intents      []Intent         `json:"intents"`
	Large        *Large           `json:"large_response,omitempty"`
	VerifyReport VerifyReport     `json:"verified"`
	Seconds      float64          `json:"seconds"`
}

// Large is the large-response event: the response, and the script that read it.
type Large struct {
	SizeBytes  int64  `json:"size_bytes"`
	FileID     string `json:"file_id"`
	ScriptHash string `json:"script_hash"`
	InputRows  int64  `json:"input_rows"`
	OutputRows int64  `json:"output_rows"`
}

// Run runs the demo. An error means that a check failed; the result is complete up to there.
func Run(ctx context.Context, o Options) (res Result, err error) {
	started := time.Now()
	res.Question = Question
	dir := o.Data
	if dir == "" {
		if dir, err = os.MkdirTemp("", "writ-demo-"); err != nil {
			return res, err
		}
		defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	url, err := quakes.Serve(ctx)
	if err != nil {
		return res, err
	}
	n, stop, err := node.Start(ctx, node.Config{Dir: dir, Documents: o.Documents, Listen: "127.0.0.1:0", Skills: []string{"trust=true -- " + url}, Model: offline.Model{}, Now: time.Now, Log: o.Log})
	if err != nil {
		return res, err
	}
	defer func() { err = errors.Join(err, stop()) }()
	key, err := n.LocalKey()
	if err != nil {
		return res, err
	}
	c := client.Client{URL: "http://" + n.Addr().String(), Key: key}
	if err := ask(ctx, c, o, &res); err != nil {
		return res, err
	}
	if err := read(ctx, c, n, &res); err != nil {
		return res, err
	}
	res.Seconds = time.Since(started).Seconds()
	return res, res.check()
}

// ask submits the question and follows its turn.
func ask(ctx context.Context, c client.Client, o Options, res *Result) error {
	turn := client.Turn{Progress: o.Progress}
	plan, err := c.Run(ctx, Question, turn.Take)
	if err != nil {
		return err
	}
	if turn.Status != string(catalog.PlanComplete) {
		return fmt.Errorf("the task ended as %s: %s", turn.Status, turn.Response)
	}
	res.Response = turn.Response
	if err := json.Unmarshal(turn.Data, &res.Answer); err != nil {
		return fmt.Errorf("the answer is not a list of places: %w", err)
	}
	return c.Get(ctx, "/agent/plans/"+plan, &res.Plan)
}

// read collects the records and events of the turn and verifies them.
func read(ctx context.Context, c client.Client, n *node.Node, res *Result) error {
	var trace struct {
		Events []struct {
			Type    string          `json:"event_type"`
			Payload json.RawMessage `json:"payload"`
		} `json:"events"`
	}
	if err := c.Get(ctx, "/agent/plans/"+res.Plan.PlanID+"/trace", &trace); err != nil {
		return err
	}
	var large Large
	for _, e := range trace.Events {
		if e.Type == "large_response.detected" || e.Type == "python_script.executed" && large.ScriptHash == "" {
			if err := json.Unmarshal(e.Payload, &large); err != nil {
				return fmt.Errorf("event %s: %w", e.Type, err)
			}
		}
	}
	if large.FileID != "" {
		res.Large = &large
	}
	var err error
	res.Intents, res.VerifyReport, err = Verify(ctx, n)
	return err
}

// check checks the result of the demo.
func (r Result) check() error {
	switch {
	case len(r.Answer) != 10:
		return fmt.Errorf("the answer has %d rows, not 10", len(r.Answer))
	case r.Plan.Status != catalog.PlanComplete:
		return fmt.Errorf("the plan is %s", r.Plan.Status)
	case r.Large == nil || r.Large.ScriptHash == "":
		return errors.New("the large response did not take the large-response path")
	case !r.VerifyReport.OK:
		return fmt.Errorf("the exported record does not verify: %w", r.VerifyReport.FirstBad)
	case !r.VerifyReport.Anchored || !r.VerifyReport.Complete || r.VerifyReport.Replayed != r.VerifyReport.Intents:
		return errors.New("the exported record is not anchored, complete and decided again as a whole")
	}
	return nil
}

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
