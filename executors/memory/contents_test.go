package memory_test

import (
	"testing"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
)

// Memory holds the output of a step, a summary, and a fact that another session
// of the user finds.
func TestMemoryContents(t *testing.T) {
	b := open(t)
	kept := map[string]struct{ scope, shape, data string }{
		"strongest": {"session", "array<{id: string, score: number}>", rows},
		"summary":   {"session", "string", `"Asked for the strongest, got ten."`},
		"likes":     {"user", "{colour: string}", `{"colour":"turquoise"}`},
	}
	for label, m := range kept {
		scope := task("task_1", 1)
		scope.ReturnSpec = spec(m.shape)
		b.Must(t, scoped(write(scope, label, m.data), m.scope), nil)
		b.Must(t, read("acme:sess_1:task_1:"+label, true), nil)
	}
	for session, lasting := range map[string]bool{"sess_1": false, "sess_2": true} {
		for label, m := range kept {
			in := inSession(read("acme:sess_1:task_1:"+label, false), session)
			if lasting && m.scope == "session" {
				if r := b.Do(t, in); r.Code != intents.NotFound {
					t.Errorf("%s in %s: %+v", label, session, r)
				}
				continue
			}
			var got catalog.ReadMemoryResult
			if b.Must(t, in, &got); string(got.Data) != m.data {
				t.Errorf("%s in %s: %s", label, session, got.Data)
			}
		}
	}
	if hits := b.query(t, "turquoise", "user", 0); len(hits) != 1 || hits[0].Key != "acme:sess_1:task_1:likes" {
		t.Errorf("%+v", hits)
	}
}
