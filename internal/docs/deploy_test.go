package docs

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var age = regexp.MustCompile(`^[1-9][0-9]*d$`)

// TestRetentionPolicy: the policy for clusters with the index management plugin
// removes months of events, and whatever else is cut by months, once they are old,
// and touches nothing else.
func TestRetentionPolicy(t *testing.T) {
	raw, err := os.ReadFile(filepath.Join(root, "deploy/opensearch/ism-agent_events.json"))
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Policy struct {
			Default string `json:"default_state"`
			States  []struct {
				Name        string           `json:"name"`
				Actions     []map[string]any `json:"actions"`
				Transitions []struct {
					State      string            `json:"state_name"`
					Conditions map[string]string `json:"conditions"`
				} `json:"transitions"`
			} `json:"states"`
			Template []struct {
				Patterns []string `json:"index_patterns"`
			} `json:"ism_template"`
		} `json:"policy"`
	}
	if err := json.Unmarshal(raw, &file); err != nil {
		t.Fatal(err)
	}
	p := file.Policy
	if len(p.States) != 2 || p.States[0].Name != p.Default || len(p.States[0].Actions) != 0 || len(p.States[0].Transitions) != 1 {
		t.Fatalf("%+v", p)
	}
	if to := p.States[0].Transitions[0]; to.State != p.States[1].Name || len(to.Conditions) != 1 || !age.MatchString(to.Conditions["min_index_age"]) {
		t.Errorf("%+v", to)
	}
	if removed := p.States[1]; len(removed.Actions) != 1 || removed.Actions[0]["delete"] == nil || len(removed.Transitions) != 0 {
		t.Errorf("%+v", removed)
	}
	if len(p.Template) != 1 {
		t.Fatalf("%+v", p.Template)
	}
	if d := cmp.Diff([]string{"agent_events-*", "agent_skill_calls-*"}, p.Template[0].Patterns); d != "" {
		t.Error(d)
	}
}
