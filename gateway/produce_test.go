package gateway

import (
	"context"
	"encoding/json"
	"net/http"
	"testing"

	"aob.dev/writ/bus"
	"aob.dev/writ/bus/natsserver"
	"aob.dev/writ/intents"
)

// A sentence goes to the manager under a grant of the caller, who may run the producer; the
// signed intent is not submitted.
func TestProduce(t *testing.T) {
	w := newWorld(t, nil)
	asked := make(chan bus.ProduceRequest, 3)
	reply := bus.ProduceReply{Envelope: json.RawMessage(`{"signed":true}`), IntentID: "sha256:1", Type: "logs.stream"}
	w.serve(natsserver.Manager, map[string]bus.Handler{bus.Produce(natsserver.Manager): func(_ context.Context, data []byte) []byte {
		var q bus.ProduceRequest
		_ = json.Unmarshal(data, &q)
		asked <- q
		raw, _ := json.Marshal(reply)
		return raw
	}})
	var got produceReply
	const body = `{"request":"Show me the errors of run r1"}`
	if resp := w.call("POST", "/v1/produce", body, nil, &got); resp.StatusCode != http.StatusOK || got.Type != "logs.stream" || string(got.Envelope) != `{"signed":true}` {
		t.Errorf("%d %+v", resp.StatusCode, got)
	}
	if q := <-asked; q.Request != "Show me the errors of run r1" || q.Grant == "" || q.TurnID == "" || q.UserID == "" {
		t.Errorf("%+v", q)
	}
	reply = bus.ProduceReply{Reason: "The request does not say which run."}
	got = produceReply{}
	if resp := w.call("POST", "/v1/produce", body, nil, &got); resp.StatusCode != http.StatusOK || got.Envelope != nil || got.Reason != reply.Reason {
		t.Errorf("%d %+v", resp.StatusCode, got)
	}
	<-asked
	reply = bus.ProduceReply{Code: string(intents.DispatchUnavailable), Reason: "the model does not answer"}
	w.refused("POST", "/v1/produce", body, nil, intents.DispatchUnavailable, "")
	<-asked
	w.refused("POST", "/v1/produce", `{"request":""}`, nil, intents.SchemaInvalid, "/request")
	w.mayNot = "agents:run:producer"
	w.refused("POST", "/v1/produce", body, nil, intents.RBACForbidden, "")
	if len(asked) != 0 {
		t.Error("the manager is asked for who may not")
	}
	w.mayNot, w.spentBudget = "", "the token budget of this user and day is spent: 9 of 9."
	if p := w.refused("POST", "/v1/produce", body, nil, intents.RateLimited, ""); p.Detail != w.spentBudget || len(asked) != 0 {
		t.Errorf("where a budget is spent: %+v", p)
	}
	w.mayNot = "logs:read"
	w.refused("GET", "/v1/logs/i1.secret", "", nil, intents.RBACForbidden, "")
}
