package agents

import (
	"errors"
	"strings"
	"testing"
	"testing/fstest"
)

// TestBlocks: a block of a prompt and an agent's description are changed, and restored,
// independently: one file each, and the registry has a digest for each state.
func TestBlocks(t *testing.T) {
	state := func(about, block string) (*Revision, string, string) {
		t.Helper()
		r := read(t, map[string]string{
			"agents/desk.yaml":   "name: desk\ndescription: " + about + "\ninstructions: |\n  You are the desk.\n  {{prompts/routing.md}}\n  Be kind.\nlimits: {request_limit: 7}\n",
			"agents/shop.yaml":   "name: shop\ndescription: Sells.\ninstructions: |\n  {{prompts/routing.md}}\n",
			"prompts/routing.md": block,
		})
		a, _ := r.Agent("desk")
		b, _ := r.Agent("shop")
		if !strings.HasSuffix(a.System(""), b.System("")+"Be kind.\n") || a.Limits.Requests != 7 {
			t.Errorf("%q and %q", a.System(""), b.System(""))
		}
		if sent, err := Parse(a.Text); err != nil || sent.System("") != a.System("") { // the text of a task
			t.Errorf("%v: %s", err, a.Text)
		}
		return r, a.Description, a.System("")
	}
	first, about, prompt := state("Answers.", "Ask one.\n\n  Then another: {it}.\n")
	if about != "Answers." || prompt != "You are the desk.\nAsk one.\n\n  Then another: {it}.\nBe kind.\n" {
		t.Errorf("%q %q", about, prompt)
	}
	both, about, prompt := state("Answers all.", "Ask two.\n")
	if about != "Answers all." || !strings.Contains(prompt, "Ask two.") {
		t.Errorf("%q %q", about, prompt)
	}
	back, about, prompt := state("Answers all.", "Ask one.\n\n  Then another: {it}.\n")
	if about != "Answers all." || !strings.Contains(prompt, "Ask one.") || back.Digest() == first.Digest() || back.Digest() == both.Digest() {
		t.Errorf("%q %q", about, prompt)
	}
	if r, about, _ := state("Answers.", "Ask one.\n\n  Then another: {it}.\n"); r.Digest() != first.Digest() || about != "Answers." {
		t.Errorf("%q, digest %s", about, r.Digest())
	}

	for name, tt := range map[string]struct{ file, want string }{
		"missing": {"name: a\ndescription: d\ninstructions: |\n  {{prompts/none.md}}\n", "agents/a.yaml:4: there is no prompts/none.md: add it, or take the line out"},
		"behind":  {"name: a\ndescription: d\ninstructions: |\n  {{prompts/b.md}}\nsub_agents: [x]\n", "agents/a.yaml:5: /sub_agents/0: there is no agent x: add it, or take it from the list"},
		"faulty":  {"name: a\ndescription: d\ninstructions: |\n  {{prompts/b.md}}\nnam: x\n", "agents/a.yaml:5: /nam: unknown member, did you mean name?"},
	} {
		r, err := Read(fstest.MapFS{"agents/a.yaml": {Data: []byte(tt.file)}, "prompts/b.md": {Data: []byte("1\n2\n3\n")}}, func(string) string { return "" })
		if err == nil {
			err = r.Check()
		}
		if faults := Faults(nil); !errors.As(err, &faults) || faults.Error() != tt.want {
			t.Errorf("%s: %v", name, err)
		}
	}
}
