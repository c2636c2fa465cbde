package offline

import (
	"maps"
	"slices"
)

// classify answers as the classifier: the agent whose description and examples share most words
// with the message. If two share the same number it reports that it does not know.
func classify(c *conversation) action {
	var agents []struct {
		Agent       string   `json:"agent"`
		Description string   `json:"description"`
		Examples    []string `json:"examples"`
		Default     bool     `json:"default"`
	}
	var before struct {
		Message string `json:"message"`
	}
	c.block("[Agents]", &agents)
	if c.blocks["[Before]"] != "" {
		c.block("[Before]", &before)
	}
	asked := vocabulary(before.Message, c.task)
	best, named, tie := 0, "", true
	for _, a := range agents {
		of := vocabulary(append(a.Examples, a.Description)...)
		n := len(slices.DeleteFunc(slices.Collect(maps.Keys(asked)), func(w string) bool { return !of[w] }))
		switch {
		case n > best:
			best, named, tie = n, a.Agent, false
		case n == best && n > 0:
			tie = true
		}
		if named == "" && a.Default {
			named = a.Agent
		}
	}
	summary := []rune(c.task)
	return action{tool: "final_result", args: map[string]any{
		"intent_summary": string(summary[:min(len(summary), 500)]), "entities": map[string]string{}, "language": "en",
		"agent": named, "confidence": float64(best) / float64(max(1, len(asked))), "ambiguous": tie,
	}}
}

// clarify asks, as the composer, what the user means.
func clarify(c *conversation) action {
	var about struct {
		For string `json:"for"`
	}
	c.block("[Clarify]", &about)
	return action{text: "I am not sure what you need. Is it this: " + sentence(about.For) + " Please say more."}
}
