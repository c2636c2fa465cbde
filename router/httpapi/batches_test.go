package httpapi_test

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/testing/routertest"
)

func (e *entrance) batch(query string, raws ...[]byte) *httptest.ResponseRecorder {
	e.Helper()
	return e.do(http.MethodPost, "/v1/batches"+query, fmt.Appendf(nil, `{"atomic":true,"intents":[%s]}`, bytes.Join(raws, []byte(","))))
}

func TestBatch(t *testing.T) {
	e := open(t)
	raws := [][]byte{e.Sign(find(e)), e.Sign(find(e))}
	w := e.batch("", raws...)
	b := decoded[intents.BatchAnswer](t, w)
	if w.Code != http.StatusOK || b.Code != intents.OK || len(b.Answers) != 2 || b.Answers[1].Receipt == "" {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	if again := decoded[intents.BatchAnswer](t, e.batch("", raws...)); !again.Answers[1].Replayed || again.Answers[1].Receipt != b.Answers[1].Receipt {
		t.Errorf("%+v", again)
	}
}

// A batch that was not accepted is the problem of the intent at fault; one that stopped has an
// answer for each as well.
func TestBatchProblems(t *testing.T) {
	e := open(t)
	bad := find(e)
	bad.Args = map[string]string{"colour": "red"}
	raw, id := e.SignID(bad)
	p := refused(t, e.batch("", e.Sign(find(e)), raw), intents.SchemaInvalid)
	if *p.Index != 1 || p.Pointer != "/intents/1/intent/args/colour" || p.IntentID != id || len(p.Violations) == 0 || p.Answers != nil || p.TraceID == "" {
		t.Errorf("%+v", p)
	}
	p = refused(t, e.do(http.MethodPost, "/v1/batches", []byte(`{"atomic":false,"intents":[]}`)), intents.SchemaInvalid)
	if p.Pointer != "/atomic" || p.Index != nil || p.TraceID == "" {
		t.Errorf("%+v", p)
	}
	refused(t, e.do(http.MethodPost, "/v1/batches", bytes.Repeat([]byte(" "), intents.MaxBatchSize+2)), intents.PayloadTooLarge)

	e.Pin("feed", catalog.Idempotent)
	task := e.Begun("p1", "feed").Started(1)
	e.Bus.On("skill.call", routertest.Always(routertest.Failed(intents.ExecutorFailed)))
	one, other := e.Sign(task.CallIntent("feed", `{"n":1}`)), e.Sign(task.CallIntent("feed", `{"n":2}`))
	p = refused(t, e.batch("", one, other), intents.ExecutorFailed)
	if *p.Index != 0 || len(p.Answers) != 2 || p.Answers[1].Code != intents.Cancelled || p.Pointer != "/intents/0" {
		t.Errorf("%+v", p)
	}
}

func TestBatchDryRun(t *testing.T) {
	e := open(t)
	o := find(e)
	o.Roles = []string{"user", "auditor"}
	before := e.Journal.Next()
	if b := decoded[intents.BatchAnswer](t, e.batch("?dry_run=true", e.Sign(o))); b.Code != intents.OK || b.Answers[0].Position != nil {
		t.Errorf("%+v", b)
	}
	refused(t, e.batch("?dry_run=true", e.Sign(find(e))), intents.RBACForbidden)
	for _, misspelt := range []string{"?dry_run=1", "?dry_run", "?dry_run=TRUE"} {
		refused(t, e.batch(misspelt, e.Sign(o)), intents.SchemaInvalid)
		refused(t, e.do(http.MethodPost, "/v1/intents"+misspelt, e.Sign(o)), intents.SchemaInvalid)
	}
	if e.Journal.Next() != before || len(e.Bus.Calls("skill.find")) != 0 {
		t.Error("a dry run left a trace")
	}
}
