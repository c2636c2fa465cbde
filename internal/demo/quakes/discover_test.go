package quakes

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestFindRelevantSkills(t *testing.T) {
	tests := []struct {
		query string
		want  []string
	}{
		{"Which ten places had the strongest earthquakes, and how strong were they?", []string{"earthquake_feed", "rank"}},
		{"How many earthquakes were there?", []string{"earthquake_feed"}},
		{"Order these rows, highest first", []string{"rank"}},
		{"Book a table for two tonight", []string{}},
	}
	c := connect(t)
	for _, tt := range tests {
		q, _ := json.Marshal(findInput{tt.query})
		r := call(t, c, "find_relevant_skills", string(q))
		validate(t, "find_output", r.RawStructuredContent)
		var out findOutput
		if err := json.Unmarshal(r.RawStructuredContent, &out); err != nil {
			t.Fatal(err)
		}
		got := []string{}
		for _, c := range out.Candidates {
			got = append(got, c.Name)
		}
		if d := cmp.Diff(tt.want, got); d != "" {
			t.Errorf("%s (-want +got):\n%s", tt.query, d)
		}
	}
}

func TestLoadSkill(t *testing.T) {
	c := connect(t)
	for _, name := range []string{"earthquake_feed", "rank"} {
		r := call(t, c, "load_skill", `{"skill_name":"`+name+`"}`)
		if r.IsError {
			t.Fatal(text(t, r))
		}
		validate(t, "load_output", r.RawStructuredContent)
		var out loadOutput
		if err := json.Unmarshal(r.RawStructuredContent, &out); err != nil {
			t.Fatal(err)
		}
		if out.Name != name || out.Endpoint != Path {
			t.Errorf("got %s at %s", out.Name, out.Endpoint)
		}
	}
	if r := call(t, c, "load_skill", `{"skill_name":"teleport"}`); !r.IsError {
		t.Error("a skill that does not exist was loaded")
	}
}
