package httpapi_test

import (
	"net/http"
	"testing"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/testing/routertest"
	"aob.dev/writ/router"
)

const flood = 400

// A flood of intents of one key, validly signed and refused by any later stage, leaves as many
// records as its rate allows, and the rest is counted.
func TestFloodIsCounted(t *testing.T) {
	e := openWith(t, routertest.Options{Rates: router.Rates{Signer: 1}})
	stop := e.RunRouter()
	raws, from := e.Flood(find(e), flood), e.Journal.Next()
	limited := int64(0)
	for _, raw := range raws {
		w := e.post(raw)
		if w.Code == http.StatusTooManyRequests {
			refused(t, w, intents.RateLimited)
			if limited++; w.Header().Get("Retry-After") == "" {
				t.Error("a limited intent is not told when to come again")
			}
		}
	}
	stop()
	s := e.Usage(from)
	if s.Intents != 10 || s.Bytes > 10*(64<<10) || limited != flood-10 || s.Counted[intents.RateLimited] != limited {
		t.Errorf("%d limited; kept %+v", limited, s)
	}
}

// The key of a task that has ended leaves no record at all, whatever its intents are refused for;
// its accepted intents are answered.
func TestFloodOfEndedTask(t *testing.T) {
	e := open(t)
	e.Pin("feed", catalog.Pure)
	task := e.Begun("p1", "feed").Started(1)
	call := e.Sign(task.CallIntent("feed", `{}`))
	first := decoded[intents.Answer](t, e.post(call))
	e.Want(task.Finish("failed", "", "gave up"), intents.OK)
	stop := e.RunRouter()
	raws, from := e.Flood(task.Intent("skill.call", nil), flood), e.Journal.Next()
	for i, raw := range raws {
		code := []intents.Code{intents.UnknownIntent, intents.KeyRole, intents.TaskScope, intents.TaskScope}[i%4]
		refused(t, e.post(raw), code)
	}
	refused(t, e.post(e.Sign(task.CallIntent("feed", `{"late":true}`))), intents.KeyRevoked)
	if again := decoded[intents.Answer](t, e.post(call)); !again.Replayed || again.Receipt != first.Receipt {
		t.Errorf("%+v", again)
	}
	stop()
	s := e.Usage(from)
	if s.Intents != 0 || s.Counted[intents.KeyRevoked] != 1 || s.Counted[intents.TaskScope] != flood/2 {
		t.Errorf("kept %+v", s)
	}
}
