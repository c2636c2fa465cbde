package router_test

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"strings"
	"testing"
	"time"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/logging"
	"aob.dev/writ/internal/testing/routertest"
	"aob.dev/writ/router"
)

// TestInternalIsLogged: the caller of an intent that fails on our side gets only INTERNAL, and the
// log has the error; a refusal has another line.
func TestInternalIsLogged(t *testing.T) {
	j := &faulty{at: 1}
	w := routertest.New(t, routertest.Options{})
	j.Journal = w.Journal
	task := started(w, catalog.Once)
	var log bytes.Buffer
	r, err := router.New(router.Config{
		Journal: j, Records: w.Journal, State: w.Dir, Bus: w.Bus, Key: w.Signer, KeySecret: routertest.KeySecret, Policy: w.Policy, Now: w.Clock.Now,
		Log: slog.New(slog.NewJSONHandler(&log, nil)),
	})
	w.Must(err)
	if _, err := r.Submit(t.Context(), []byte("{}")); intents.CodeOf(err) != intents.SignatureInvalid || strings.Contains(log.String(), "ERROR") {
		t.Errorf("a refusal: %v, logged %s", err, &log)
	}
	log.Reset()
	j.on = true
	if _, err := r.Submit(t.Context(), w.Sign(task.CallIntent("feed", `{}`))); intents.CodeOf(err) != intents.Internal {
		t.Fatalf("the journal fails: %v", err)
	}
	var line struct {
		Level, Msg, Error string
	}
	if err := json.Unmarshal(log.Bytes(), &line); err != nil || line.Level != "ERROR" || line.Msg != "intent" || line.Error != errDisk.Error() {
		t.Errorf("logged %q", &log)
	}
}

// TestRefusalsAreLogged: a refusal that leaves no record is a log line with its unverified sender
// and type; a flood of them is a few lines, and the next one says how many were left out.
func TestRefusalsAreLogged(t *testing.T) {
	w := routertest.New(t, routertest.Options{})
	task := started(w, catalog.Once)
	var log bytes.Buffer
	r, err := router.New(router.Config{
		Journal: w.Journal, Records: w.Journal, State: w.Dir, Bus: w.Bus, Key: w.Signer, KeySecret: routertest.KeySecret, Policy: w.Policy, Now: w.Clock.Now,
		Log: logging.New(&log, slog.LevelInfo, false),
	})
	w.Must(err)
	type line struct {
		Code, Type string
		TraceID    string `json:"trace_id"`
		RequestID  string `json:"request_id"`
		LeftOut    int    `json:"left_out"`
		Claimed    struct {
			Tenant string
			UserID string `json:"user_id"`
		}
	}
	submit := func(raw []byte, code intents.Code) (lines []line) {
		log.Reset()
		if _, err := r.Submit(t.Context(), raw); intents.CodeOf(err) != code {
			t.Fatalf("%v, want %s", err, code)
		}
		for text := range strings.Lines(log.String()) {
			var l line
			w.Must(json.Unmarshal([]byte(text), &l))
			lines = append(lines, l)
		}
		return lines
	}
	signed := w.Sign(task.CallIntent("feed", `{}`))
	u, err := intents.Parse(signed)
	w.Must(err)
	actor := u.Body().Actor

	changed := bytes.Replace(signed, []byte(`"feed"`), []byte(`"food"`), 1)
	got := submit(changed, intents.SignatureInvalid) // stage 2
	if len(got) != 1 || got[0].Code != string(intents.SignatureInvalid) || got[0].Type != "skill.call" || got[0].Claimed.Tenant != actor.Tenant || got[0].Claimed.UserID != actor.UserID ||
		len(got[0].TraceID) != 32 || got[0].RequestID != got[0].TraceID {
		t.Errorf("a changed intent: %s", &log)
	}
	got = submit([]byte(`{"actor":{"tenant":"t1","user_id":"ada@example.com"},"intent":{"type":"files.put"},"trace_id":"x",}`), intents.SchemaInvalid) // stage 1
	if len(got) != 1 || got[0].Code != string(intents.SchemaInvalid) || strings.Contains(log.String(), "ada@") {
		t.Errorf("a malformed one: %s", &log)
	}
	w.Clock.Move(time.Hour)
	got = submit(signed, intents.GrantInvalid)
	if len(got) != 1 {
		t.Errorf("an old one: %s", &log)
	}
	lines := 0
	for range 100 {
		lines += len(submit(changed, intents.SignatureInvalid))
	}
	w.Clock.Move(time.Second)
	if got = submit(changed, intents.SignatureInvalid); lines != 10 || len(got) != 1 || got[0].LeftOut != 90 {
		t.Errorf("%d lines of a flood, and then %s", lines, &log)
	}
}
