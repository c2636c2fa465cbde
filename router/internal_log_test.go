package router_test

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"testing"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/router"
	"aob.dev/writ/router/routertest"
)

// TestInternalIsLogged: the caller of an order that fails on our side is told
// INTERNAL alone, and the log what it was; a refusal is not logged.
func TestInternalIsLogged(t *testing.T) {
	j := &faulty{at: 1}
	w := routertest.New(t, routertest.Options{})
	j.Journal = w.Journal
	task := started(w, catalog.Once)
	var log bytes.Buffer
	r, err := router.New(router.Config{
		Journal: j, Records: w.Journal, State: w.Dir, Bus: w.Bus, Key: w.Signer, Policy: w.Policy, Now: w.Clock.Now,
		Log: slog.New(slog.NewJSONHandler(&log, nil)),
	})
	w.Must(err)
	if _, err := r.Submit(t.Context(), []byte("{}")); intents.CodeOf(err) != intents.SignatureInvalid || log.Len() > 0 {
		t.Errorf("a refusal: %v, logged %s", err, &log)
	}
	j.on = true
	if _, err := r.Submit(t.Context(), w.Seal(task.CallOrder("feed", `{}`))); intents.CodeOf(err) != intents.Internal {
		t.Fatalf("the journal fails: %v", err)
	}
	var line struct {
		Level, Msg, Error string
	}
	if err := json.Unmarshal(log.Bytes(), &line); err != nil || line.Level != "ERROR" || line.Msg != "order" || line.Error != errDisk.Error() {
		t.Errorf("logged %q", &log)
	}
}
