package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"time"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/state"
	"aob.dev/writ/storage"
	"aob.dev/writ/storage/sqlite"
)

// eraseSessions erases each intent that was acknowledged, once, until ctx ends or
// writ has died.
func (l *load) eraseSessions(ctx context.Context) {
	origin, asked := "", map[int64]bool{}
	for ctx.Err() == nil {
		l.mu.Lock()
		accepted := make([]intents.Answer, 0, len(l.accepted))
		for _, a := range l.accepted {
			if !asked[*a.Position] {
				accepted = append(accepted, a)
			}
		}
		l.mu.Unlock()
		if len(accepted) == 0 {
			select {
			case <-ctx.Done():
			case <-time.After(time.Millisecond):
			}
			continue
		}
		slices.SortFunc(accepted, func(a, b intents.Answer) int { return int(*a.Position - *b.Position) })
		if origin == "" {
			if origin = l.origin(); origin == "" {
				return // it died before it reported that
			}
		}
		for _, a := range accepted {
			asked[*a.Position] = true
			raw := l.byOperator(origin, "record.erase", catalog.RecordErase{
				Tenant: "default", IntentID: a.IntentID, Position: *a.Position, Parts: []string{catalog.ErasesEnvelope, catalog.ErasesResult}, Reason: "the test wants it",
			})
			req, err := http.NewRequestWithContext(ctx, http.MethodPost, l.url+"/v1/intents", bytes.NewReader(raw))
			if err != nil {
				l.t.Error(err)
				return
			}
			resp, err := http.DefaultClient.Do(req)
			if err != nil {
				return
			}
			var said intents.Answer
			err = json.NewDecoder(resp.Body).Decode(&said)
			_ = resp.Body.Close()
			if err != nil {
				return // it died while it answered
			}
			if said.Code != intents.OK && said.Code != intents.InFlight {
				l.t.Errorf("an erasure was answered %s %s: %s", said.Code, said.Pointer, said.Reason)
				return
			}
		}
	}
}

// erased: what an accepted record.erase names is in no file of the journal, and no
// other intent has lost a part.
func (l *load) erased() {
	l.t.Helper()
	dir := filepath.Join(l.dir, "journal")
	records, err := sqlite.OpenRecords(l.t.Context(), dir)
	if err != nil {
		l.t.Fatal(err)
	}
	defer records.Close()
	named, lost := map[int64]bool{}, map[int64]string{}
	for rec, err := range records.Scan(l.t.Context(), 0) {
		if err != nil {
			l.t.Fatal(err)
		}
		if rec.Kind != storage.KindIntent {
			continue
		}
		s, err := state.ReadIntent(rec)
		if err != nil {
			l.t.Fatal(err)
		}
		if _, gone := rec.Erased[storage.PartEnvelope]; gone {
			lost[rec.Position] = s.Decision.IntentID
		}
		if s.Type == "record.erase" && s.Decision.Verdict == intents.Allow {
			var a catalog.RecordErase
			if err := json.Unmarshal(s.Args, &a); err != nil {
				l.t.Fatal(err)
			}
			named[a.Position] = true
		}
	}
	if l.how.erase && len(named) == 0 {
		l.t.Error("nothing was erased before it died")
	}
	for at := range named {
		if lost[at] == "" {
			l.t.Errorf("intent %d was to be erased, and is there", at)
		}
	}
	for at := range lost {
		if !named[at] {
			l.t.Errorf("intent %d has lost its envelope, and nobody asked for that", at)
		}
	}
	for _, raw := range l.sessions {
		var e intents.Body
		if err := json.Unmarshal(raw, &e); err != nil {
			l.t.Fatal(err)
		}
		if at, ok := l.at(raw); !ok || !named[at] {
			continue
		}
		for _, name := range []string{"journal.db", "journal.db-wal"} {
			file, err := os.ReadFile(filepath.Join(dir, name))
			if err == nil && bytes.Contains(file, []byte(e.TraceID)) {
				l.t.Errorf("intent %s is erased, and its trace_id is still in %s", e.TraceID, name)
			}
		}
	}
}

// at is where a signed intent was acknowledged.
func (l *load) at(raw []byte) (int64, bool) {
	u, err := intents.Parse(raw)
	if err != nil {
		l.t.Fatal(err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	a, ok := l.accepted[u.ID()]
	if !ok {
		return 0, false
	}
	return *a.Position, true
}
