package cli

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestUserErase: the user is disabled and erased, and one report says what goes and what stays. The
// operator's own id, and no reason, are refused before anything is signed.
func TestUserErase(t *testing.T) {
	answer := strings.Replace(doneAnswer, `"duration_ms":1`, `"duration_ms":1,"result":{"accepted":true,"intents":5,"erased":3,"retained":[{"type":"skill.call","why":"held","intents":2}],"stays":["elsewhere"]}`, 1)
	url, key, last := operatorsRouter(t, answer)
	for args, says := range map[string]string{
		"user erase local --tenant system --reason asked": "your own user",
		"user erase ana": "--reason",
	} {
		if got := (call{args: append(strings.Fields(args), "--url", url, "--signer", key)}).run(t.Context()); got.code == ExitOK || !strings.Contains(got.err, says) {
			t.Errorf("%s: %+v", args, got)
		}
	}
	args := append(strings.Fields("user erase ana --reason asked --tenant acme"), "--url", url, "--signer", key)
	got := call{args: args}.run(t.Context())
	if got.code != ExitOK || !strings.Contains(got.out, "3 of 5 intents") || !strings.Contains(got.out, "2 skill.call: people were asked") || !strings.Contains(got.out, "- elsewhere\n") {
		t.Errorf("%+v", got)
	}
	typ, sent := last()
	if want := `{"tenant":"acme","user_id":"ana","reason":"asked"}`; typ != "user.erase" || cmp.Diff(parsed(t, want), parsed(t, string(sent))) != "" {
		t.Errorf("%s: %s", typ, sent)
	}
	got = call{args: append(args, "--json")}.run(t.Context())
	want := `{"intent_id":"sha256:1","position":7,"tenant":"acme","user_id":"ana","accepted":true,"intents":5,"erased":3,"retained":[{"type":"skill.call","why":"held","intents":2}],"stays":["elsewhere"]}`
	if d := cmp.Diff(parsed(t, want), parsed(t, got.out)); d != "" {
		t.Error(d)
	}
}
