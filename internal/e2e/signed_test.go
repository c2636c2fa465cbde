package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"time"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
)

// sendSessions creates a session and appends to it. What was accepted before a
// death is answered as it was.
func (l *load) sendSessions(ctx context.Context) {
	if l.sessions == nil {
		l.sign()
	}
	for _, raw := range l.sessions {
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, l.url+"/v1/intents", bytes.NewReader(raw))
		if err != nil {
			l.t.Error(err)
			return
		}
		req.Header.Set("Prefer", "wait=20")
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			return
		}
		var a intents.Answer
		err = json.NewDecoder(resp.Body).Decode(&a)
		_ = resp.Body.Close()
		if err != nil {
			return // it died while it answered
		}
		if a.Code != intents.OK || a.Receipt == "" || a.Position == nil {
			l.t.Errorf("an intent was answered %s %s: %s", a.Code, a.Pointer, a.Reason)
			return
		}
		l.mu.Lock()
		before, known := l.accepted[a.IntentID]
		l.accepted[a.IntentID] = a
		l.mu.Unlock()
		if known && (before.Receipt != a.Receipt || !a.Replayed) {
			l.t.Errorf("intent %s was acknowledged at %d; later it is at %d, replayed %v", a.IntentID, *before.Position, *a.Position, a.Replayed)
		}
	}
}

// sign makes the intents as the gateway of this data directory would.
func (l *load) sign() {
	key, err := intents.ReadKey(filepath.Join(l.dir, "keys", "gateway.pem"), intents.RoleGateway)
	if err != nil {
		l.t.Error(err)
		return
	}
	origin, now := l.origin(), time.Now()
	if origin == "" {
		return // it died before it reported that
	}
	grant, err := intents.IssueGrant(key, intents.Grant{
		Issuer: origin, Audience: origin, Subject: "ann", Tenant: "default", Roles: []string{"user"},
		Act: intents.Act{Client: "test", AMR: []string{"none"}}, Session: "s1", Turn: "t1", IssuedAt: now.Unix(), Expires: now.Add(intents.MaxGrantLife).Unix(), ID: "g",
	})
	if err != nil {
		l.t.Error(err)
		return
	}
	list := []struct {
		typ  string
		args any
	}{{"session.create", catalog.SessionCreate{SessionID: "s1"}}}
	for i := range 4 {
		turn := catalog.Turn{Role: "user", Content: fmt.Sprint("turn ", i), Timestamp: now.UTC().Truncate(time.Millisecond)}
		list = append(list, struct {
			typ  string
			args any
		}{"session.append", catalog.SessionAppend{SessionID: "s1", Turns: []catalog.Turn{turn}}})
	}
	for i, o := range list {
		args, err := json.Marshal(o.args)
		if err != nil {
			l.t.Error(err)
			return
		}
		raw, _, err := intents.Sign(key, intents.Body{
			Version: intents.Version, Intent: intents.Spec{Type: o.typ, Args: args},
			Actor: intents.Actor{UserID: "ann", Tenant: "default", Grant: grant}, TraceID: fmt.Sprintf("%032x", i+1),
			Constraints: intents.Constraints{IssuedAt: intents.FormatTime(now), TTLSec: 300, Audience: origin, IdempotencyKey: intents.Digest([]byte(fmt.Sprint(i)))},
			Context:     &intents.Context{SessionID: "s1", TurnID: "t1"},
		})
		if err != nil {
			l.t.Error(err)
			return
		}
		l.sessions = append(l.sessions, raw)
	}
}

// origin of the log of this data directory, as it is published; empty where
// nobody answers.
func (l *load) origin() string {
	resp, err := http.Get(l.url + "/.well-known/jwks.json")
	if err != nil {
		return ""
	}
	defer resp.Body.Close()
	var set intents.JWKS
	_ = json.NewDecoder(resp.Body).Decode(&set) // it may die while it answers
	return set.Origin
}
