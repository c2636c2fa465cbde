package offline

import (
	"regexp"
	"slices"
	"strings"
)

// Forms of sentences that the producer knows.
var (
	ofRun    = regexp.MustCompile(`(?i)\b(?:run|plan)\s+["']?([A-Za-z0-9_.-]*[A-Za-z0-9_-])`)
	ofNode   = regexp.MustCompile(`(?i)\b(?:node|step)\s+["']?([A-Za-z0-9_.-]*[A-Za-z0-9_-])`)
	ofLogs   = regexp.MustCompile(`(?i)\b(?:logs?|errors?|lines)\b`)
	ofErrors = regexp.MustCompile(`(?i)\berrors?\b`)
)

// produce answers as the producer: with an intent if the sentence asks for the logs of a run,
// otherwise with a reason.
func produce(c *conversation) action {
	type intent struct {
		Type string `json:"type"`
	}
	var intents []intent
	c.block("[Intents]", &intents)
	typ, args := "", map[string]any{}
	first := func(of *regexp.Regexp) string {
		if m := of.FindStringSubmatch(c.task); m != nil {
			return m[1]
		}
		return ""
	}
	if ofLogs.MatchString(c.task) && first(ofRun) != "" {
		typ, args["run_id"] = "logs.stream", first(ofRun)
		if ofErrors.MatchString(c.task) {
			args["filter"] = "errors"
		}
		if node := first(ofNode); node != "" {
			args["node_id"] = node
		}
	}
	if !slices.Contains(intents, intent{typ}) {
		var known []string
		for _, x := range intents {
			known = append(known, x.Type)
		}
		return action{tool: "final_result", args: map[string]any{
			"type": nil, "args": nil, "reason": "I cannot make one intent of this. I know sentences such as: show me the errors of run R. Intents here: " + strings.Join(known, ", ") + ".",
		}}
	}
	return action{tool: "final_result", args: map[string]any{"type": typ, "args": args, "reason": nil}}
}
