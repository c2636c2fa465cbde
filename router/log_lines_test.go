package router_test

import (
	"encoding/json"
	"strings"
	"testing"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/testing/routertest"
	"aob.dev/writ/policies"
	"aob.dev/writ/storage"
)

// The log lines that an executor reports are a part of their own of the outcome's record: bounded,
// in a printable form, and absent if a policy masks the result. The requester is not named.
func TestLinesOfARecord(t *testing.T) {
	for name, masked := range map[string]bool{"plain": false, "masked": true} {
		t.Run(name, func(t *testing.T) {
			w := routertest.New(t, routertest.Options{})
			if masked {
				_, err := w.Policy.ReplaceTree(t.Context(), policies.Tree{Source: with(`package writ.authz

# METADATA
# description: Nobody sees it.
obligations contains {"name": "mask", "value": "/output"} if input.intent.type == "skill.call"
`)}, w.Router.SelfProof)
				w.Must(err)
			}
			r := routertest.Done(catalog.SkillCallResult{Output: []byte(`1`)})
			for range 500 {
				r.Lines = append(r.Lines, intents.Line{At: w.Clock.Now(), Level: "loud", Source: "feed:stderr", Text: "secret \x1b" + strings.Repeat("x", 3000)})
			}
			w.Bus.On("skill.call", routertest.Always(r))
			a := w.Want(started(w, catalog.Pure).Call("feed", `{}`), intents.OK)
			if told, err := json.Marshal(a); err != nil || strings.Contains(string(told), "secret") {
				t.Errorf("the user who asked for it is told %s", told)
			}
			for _, rec := range w.Records() {
				part, there := rec.Parts[storage.PartLines]
				lines, err := rec.Lines()
				switch out, _ := rec.Outcome(); {
				case rec.Kind != storage.KindOutcome || out.Target != *a.Position:
					if there {
						t.Errorf("record %d has lines", rec.Position)
					}
				case masked:
					if there {
						t.Errorf("%s", part)
					}
				case err != nil || len(lines) < 20 || len(part) > intents.MaxLineBytes+intents.MaxLine+200*len(lines) || lines[0].Level != intents.LevelInfo || !strings.HasPrefix(lines[0].Text, `secret \x1bxxx`) || len(lines[0].Text) > intents.MaxLine:
					t.Errorf("%d lines, %d bytes, %v: %.200s", len(lines), len(part), err, part)
				}
			}
		})
	}
}
