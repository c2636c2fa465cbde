package quakes

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode"
)

type findInput struct {
	Query string `json:"query"`
}

type candidate struct {
	Name        string `json:"name"`
	Description string `json:"description"`
}

type findOutput struct {
	Candidates []candidate `json:"candidates"`
}

// findSkill is find_relevant_skills over the given skills: those that
// share at least one word with the query, most shared words first.
func findSkill(skills []skill) skill {
	return skill{
		name:        "find_relevant_skills",
		description: "Finds the skills of this server that may help with a task, best first.",
		input:       schema("find_input"),
		output:      schema("find_output"),
		handle: typed(func(in findInput) (findOutput, error) {
			return findOutput{Candidates: find(skills, in.Query)}, nil
		}),
	}
}

func find(skills []skill, query string) []candidate {
	type hit struct {
		candidate
		score int
	}
	var hits []hit
	want := words(query)
	for _, s := range skills {
		have, score := words(s.name+" "+s.description), 0
		for w := range want {
			if have[w] {
				score++
			}
		}
		if score > 0 {
			hits = append(hits, hit{candidate{s.name, s.description}, score})
		}
	}
	slices.SortStableFunc(hits, func(a, b hit) int { return cmp.Compare(b.score, a.score) })
	found := make([]candidate, len(hits))
	for i, h := range hits {
		found[i] = h.candidate
	}
	return found
}

// words are the words of four letters and more, in lower case, cut to their
// first six letters so that "strong" meets "strongest" and plurals meet.
func words(s string) map[string]bool {
	set := map[string]bool{}
	split := func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }
	for w := range strings.FieldsFuncSeq(strings.ToLower(s), split) {
		r := []rune(w)
		if len(r) >= 4 && !common[w] {
			set[string(r[:min(len(r), 6)])] = true
		}
	}
	return set
}

// common are words that say nothing about what a task is about.
var common = map[string]bool{
	"that": true, "this": true, "with": true, "what": true, "which": true, "were": true, "have": true, "from": true,
	"they": true, "them": true, "each": true, "than": true, "then": true, "their": true, "there": true, "when": true,
	"where": true, "many": true, "more": true, "most": true, "some": true, "same": true, "takes": true, "returns": true,
	"input": true, "unless": true, "otherwise": true, "give": true, "show": true, "list": true, "tell": true,
}

type loadInput struct {
	SkillName string `json:"skill_name"`
}

type loadOutput struct {
	Name          string          `json:"name"`
	Description   string          `json:"description"`
	InputSchema   json.RawMessage `json:"input_schema"`
	OutputSchema  json.RawMessage `json:"output_schema"`
	ExecutionMode string          `json:"execution_mode"`
	Endpoint      string          `json:"endpoint"`
}

// loadSkill is load_skill over the given skills.
func loadSkill(skills []skill) skill {
	return skill{
		name:        "load_skill",
		description: "Returns the manifest of one skill: its description and its input and output schemas.",
		input:       schema("load_input"),
		output:      schema("load_output"),
		handle: typed(func(in loadInput) (loadOutput, error) {
			i := slices.IndexFunc(skills, func(s skill) bool { return s.name == in.SkillName })
			if i < 0 {
				return loadOutput{}, fmt.Errorf("there is no skill named %q", in.SkillName)
			}
			s := skills[i]
			return loadOutput{s.name, s.description, s.input, s.output, "mcp", Path}, nil
		}),
	}
}
