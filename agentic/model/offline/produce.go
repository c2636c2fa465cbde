package offline

import (
	"regexp"
	"slices"
	"strings"
)

// Forms of sentences that the producer knows.
var (
	ofRun      = regexp.MustCompile(`(?i)\b(?:run|plan)\s+["']?([A-Za-z0-9_.-]*[A-Za-z0-9_-])`)
	ofNode     = regexp.MustCompile(`(?i)\b(?:node|step)\s+["']?([A-Za-z0-9_.-]*[A-Za-z0-9_-])`)
	ofLogs     = regexp.MustCompile(`(?i)\b(?:logs?|errors?|lines)\b`)
	ofErrors   = regexp.MustCompile(`(?i)\berrors?\b`)
	ofArtifact = regexp.MustCompile(`cas://sha256:[0-9a-f]{64}\b`)
	ofWorkflow = regexp.MustCompile(`(?i)^\s*(?:start|run)\s+(?:the\s+)?workflow\s+["']?([A-Za-z0-9_.-]*[A-Za-z0-9_-])`)
	ofSearch   = regexp.MustCompile(`(?i)^\s*(?:what do we know about|search (?:the )?knowledge(?: base)? for)\s+(.+?)[\s?.!]*$`)
)

// produce answers as the producer: with an order where the sentence has one of a few forms,
// else with a reason.
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
	switch artifact := ofArtifact.FindString(c.task); {
	case first(ofWorkflow) != "":
		typ, args = "workflow.start", map[string]any{"workflow_id": first(ofWorkflow), "inputs": map[string]any{}}
	case first(ofSearch) != "":
		typ, args = "kb.search", map[string]any{"q": first(ofSearch)}
	case ofLogs.MatchString(c.task) && first(ofRun) != "":
		typ, args["run_id"] = "logs.stream", first(ofRun)
		if ofErrors.MatchString(c.task) {
			args["filter"] = "errors"
		}
		if node := first(ofNode); node != "" {
			args["node_id"] = node
		}
	case artifact != "":
		typ, args["artifact"] = "artifact.get", artifact
	}
	if !slices.Contains(intents, intent{typ}) {
		var known []string
		for _, x := range intents {
			known = append(known, x.Type)
		}
		return action{tool: "final_result", args: map[string]any{
			"type": nil, "args": nil, "reason": "I cannot make one order of this. I know sentences such as: show me the errors of run R. Orders here: " + strings.Join(known, ", ") + ".",
		}}
	}
	return action{tool: "final_result", args: map[string]any{"type": typ, "args": args, "reason": nil}}
}
