package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"aob.dev/writ/agentic/model/offline"
	"aob.dev/writ/internal/demo"
	"aob.dev/writ/internal/node"
)

// verifyJournal opens the data directory of a writ that has ended, checks every
// intent and receipt of the journal, and prints the intents: type, role, code, status.
func verifyJournal(ts *testscript.TestScript, w *world, _ []string) {
	if w.up != nil {
		ts.Fatalf("writ is still up")
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	n, err := node.Open(ctx, node.Config{Dir: w.data, Model: offline.Model{}, Now: time.Now, Log: slog.New(slog.DiscardHandler)})
	ts.Check(err)
	defer n.Close()
	list, v, err := demo.Verify(ctx, n)
	ts.Check(err)
	if !v.OK || v.Intents != int64(len(list)) {
		ts.Fatalf("not verified: %+v", v)
	}
	for _, o := range list {
		must[int](ts)(fmt.Fprintf(ts.Stdout(), "%s %s %s %s\n", o.Type, o.Role, o.Code, o.Status))
	}
}

// checkDemo checks a file with the output of `writ demo --json`.
func checkDemo(ts *testscript.TestScript, _ *world, args []string) {
	want(ts, args, 1, "demo FILE")
	var r struct {
		Answer []struct {
			Rank      int
			Place     string
			Magnitude float64
		}
		Plan struct {
			Status string
			Steps  []json.RawMessage
		}
		Intents  []json.RawMessage `json:"intents"`
		Verified struct {
			OK      bool
			Intents int `json:"intents"`
		}
	}
	decodeOne(ts, args[0], &r)
	if len(r.Answer) != 10 || r.Plan.Status != "complete" || len(r.Plan.Steps) == 0 {
		ts.Fatalf("%d rows, plan %s of %d steps", len(r.Answer), r.Plan.Status, len(r.Plan.Steps))
	}
	for i, row := range r.Answer {
		if row.Rank != i+1 || row.Place == "" || row.Magnitude < 5 || (i > 0 && row.Magnitude > r.Answer[i-1].Magnitude) {
			ts.Fatalf("row %d: %+v", i+1, row)
		}
	}
	if !r.Verified.OK || len(r.Intents) == 0 || r.Verified.Intents != len(r.Intents) {
		ts.Fatalf("%d intents, verified: %+v", len(r.Intents), r.Verified)
	}
}

// checkVerdict checks a file with the output of `writ intent verify --json`:
// verdict FILE CODE POINTER, "-" for none.
func checkVerdict(ts *testscript.TestScript, _ *world, args []string) {
	want(ts, args, 3, "verdict FILE CODE POINTER")
	var v struct {
		Valid    *bool   `json:"valid"`
		Code     *string `json:"code"`
		Pointer  *string `json:"pointer"`
		Reason   *string `json:"reason"`
		IntentID *string `json:"intent_id"`
		KID      *string `json:"kid"`
	}
	decodeOne(ts, args[0], &v)
	if v.Valid == nil || v.Code == nil || v.Pointer == nil || v.Reason == nil || v.IntentID == nil || v.KID == nil {
		ts.Fatalf("a member is missing: %s", ts.ReadFile(args[0]))
	}
	code, pointer := codeNamed(ts, args[1]), strings.TrimPrefix(args[2], "-")
	if *v.Code != string(code) || *v.Pointer != pointer || *v.Valid != (code == "OK") || (*v.Reason == "") != *v.Valid {
		ts.Fatalf("not %s at %q: %s", code, pointer, ts.ReadFile(args[0]))
	}
}

// decodeOne decodes a file of one JSON document and nothing else, whose
// members are all known where out is a closed struct.
func decodeOne(ts *testscript.TestScript, file string, out any) {
	ts.Check(json.Unmarshal([]byte(ts.ReadFile(file)), out))
}
