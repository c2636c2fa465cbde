package router_test

import (
	"encoding/json"
	"strings"
	"testing"

	"aob.dev/writ/bus"
	"aob.dev/writ/bus/natsserver"
	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/testing/intentstest"
	"aob.dev/writ/internal/testing/routertest"
)

// TestServeVectors: over NATS every vector gets its code; a verified intent gets the decision about
// it, or is refused for its age.
func TestServeVectors(t *testing.T) {
	c := serveWith(t, routertest.Options{Root: routertest.VectorRoot(t)})
	c.KnowVectors()
	agent := c.connect(natsserver.Task)
	c.Vectors(func(raw []byte) (intents.Code, bool) {
		answer, err := agent.Request(c.Context(), bus.Intents, raw)
		c.Must(err)
		var a intents.Answer
		c.Must(json.Unmarshal(answer, &a))
		return a.Code, a.Decision != nil || a.Code == intents.ExpiredTTL || a.Code == intents.NotYetValid
	})
}

// TestRefusedKeysOpenNothing: a key that a vector marks as inadmissible is not accepted with a
// root-signed key set, nor as the key of a task.
func TestRefusedKeysOpenNothing(t *testing.T) {
	w := routertest.New(t, routertest.Options{})
	p := w.Begun("plan_1", "feed")
	tried := 0
	for _, v := range intentstest.Vectors(t) {
		for _, bad := range v.Refused {
			tried++
			if a := w.Keys(func(set *intents.KeySet) { set.Keys = append(set.Keys, bad) }); a.Code != intents.MalformedArgs || !strings.Contains(a.Reason, "key ") {
				t.Errorf("%s: in a key set: %s %s", v.Name, a.Code, a.Reason)
			}
			args := p.NewTask(1).StepArgs()
			args.JWK = bad
			args.JWK.Role = intents.RoleTask
			if a := w.Do(p.StepIntent(args)); a.Code != intents.MalformedArgs && a.Code != intents.SchemaInvalid || a.Pointer == "" {
				t.Errorf("%s: as a task's key: %s %s %s", v.Name, a.Code, a.Pointer, a.Reason)
			}
		}
	}
	if tried < 30 {
		t.Errorf("%d keys tried", tried)
	}
}

// TestOperatorClaims: an operator's intent may name roles, but none that the directory does not
// give.
func TestOperatorClaims(t *testing.T) {
	w := routertest.New(t, routertest.Options{})
	data := catalog.AdminPut{Data: &catalog.Data{Key: "x.k", Value: json.RawMessage(`1`)}}
	for _, c := range []struct {
		claim []string
		want  intents.Code
	}{{nil, intents.OK}, {[]string{"admin"}, intents.OK}, {[]string{"admin", "user"}, intents.RBACForbidden}} {
		a := w.Want(w.Do(routertest.Intent{By: w.Operator, Type: "admin.put", Args: data, Claim: c.claim}), c.want)
		if c.want != intents.OK && a.Pointer != "/actor/roles" {
			t.Errorf("%v: %s", c.claim, a.Pointer)
		}
	}
}
