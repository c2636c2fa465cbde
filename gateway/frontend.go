package gateway

import (
	"context"
	"encoding/json"
	"net/http"
	"regexp"
	"strings"

	"github.com/gin-gonic/gin"

	"aob.dev/writ/bus"
	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/problem"
)

// A chat front end asks its model for more than answers: for a title of the chat, tags, questions
// that may follow. The model alone answers these: without a plan.

// frontEndPrompts recognise the templates of front ends, in every version and translation that keeps
// their form: what is asked for in the first line, and the chat that it is about below.
var frontEndPrompts = []struct{ asks, chat *regexp.Regexp }{
	{ // Open WebUI: backend/open_webui/config.py, DEFAULT_…_PROMPT_TEMPLATE
		regexp.MustCompile(`(?i)^### Task:\s*\n\s*(` + strings.Join([]string{
			`(generate|create|write|provide|suggest) [^\n]*\b(title|tags)\b[^\n]*\b(chat|conversation)\b`,
			`(generate|create|write|provide|suggest) [^\n]*\bfollow-?\s?up (questions?|prompts?)\b`,
			`(analyze|based on) the chat history\b[^\n]*\bsearch\b`,
			`generate a detailed prompt for a\w* image generation\b`,
			`you are an autocompletion system\b`,
		}, "|") + `)`),
		regexp.MustCompile(`(?is)\n(### Chat History:\s*[^<\s]|<chat_history>.*</chat_history>\s*(<type>.*|#+ output:.*)?$)`),
	},
	{ // Open WebUI before the heading
		regexp.MustCompile(`(?i)^create a concise, [^\n]*\b(title|phrase)\b[^\n]*\bchat history\b`),
		regexp.MustCompile(`(?is)\n<chat_history>.*</chat_history>\s*$`),
	},
	{
		regexp.MustCompile(`^Your task is to reflect the speaker's likely facial expression through a fitting emoji\.`),
		regexp.MustCompile(`\n\s*Message: ["“]`),
	},
	{ // LibreChat: danny-avila/agents, src/utils/title.ts, and its earlier ones
		regexp.MustCompile(`(?i)^(please )?(detect [^.\n]* and )?(provide|write|generate)\b[^.\n]*\bconcise\b[^.\n]*\btitle\b[^.\n]*\bconversation\b`),
		regexp.MustCompile(`(?is)^.{0,250}\b\d+[- ](words?|characters)\b.*\n\W*(conversation|user|human):`),
	},
	{
		regexp.MustCompile(`^Analyze this conversation and provide:\s*\n\s*1\. The detected language`),
		regexp.MustCompile(`(?i)\n\s*2\. A concise title\b[^\n]*\n`),
	},
}

// isFrontEndPrompt reports whether the only message of the user is such a prompt. One that merely
// contains a template, or asks about it, is a request for a turn.
func isFrontEndPrompt(messages []chatMessage) bool {
	var text string
	for _, m := range messages {
		switch {
		case saidBy[m.Role] == catalog.SpeakerSystem:
		case m.Role == "user" && text == "":
			text = strings.TrimSpace(m.text())
		default:
			return false
		}
	}
	for _, p := range frontEndPrompts {
		if p.asks.MatchString(text) && p.chat.MatchString(text) {
			return true
		}
	}
	return false
}

// answerPrompt has the model alone answer a prompt of a front end, for a key of one at a rate of its
// own. The usage of its tokens is recorded, and nothing else.
func (g *Gateway) answerPrompt(c *gin.Context, who caller, r openaiRequest, prompt string, dialectOf func(turn, *sse, openaiRequest) dialect) error {
	ctx, cancel := context.WithTimeout(c.Request.Context(), g.pace.wait)
	defer cancel()
	if who.key.FrontEnd {
		who.rate = g.prompts
	}
	a, err := g.identify(ctx, who, claim{})
	if err != nil {
		return err
	}
	if _, err := g.agentOf(ctx, a, namedAgent{r.Model, "/model"}); err != nil {
		return err
	}
	open, _ := catalog.Builtin().Lookup("plan.open")
	if err := g.affords(ctx, a, open.Capability); err != nil {
		return err
	}
	t := turn{actor: a, id: newID("turn"), opened: g.cfg.Now()}
	grant, _, err := g.issueGrant(a, t.id, "")
	if err != nil {
		return err
	}
	made, err := askBy[bus.PromptReply](ctx, g.cfg.Bus.Request, bus.Prompts, bus.PromptRequest{TurnRef: a.turnRef(t.id, "", grant), Prompt: prompt})
	switch {
	case err != nil:
		return unanswered(err, "the manager")
	case made.Code != "":
		return problem.New(intents.Code(made.Code), "", made.Reason)
	}
	var used []catalog.Usage
	if err := json.Unmarshal(made.Usage, &used); err != nil {
		return err
	}
	text, err := r.format.write(made.Text, true)
	if err != nil {
		return err
	}
	t.plan = t.id // the id of the answer
	d := dialectOf(t, newSSE(c.Writer), r)
	if !r.Stream {
		c.JSON(http.StatusOK, d.whole(text, runReply{}, total(used)))
		return nil
	}
	d.begin()
	d.say(text)
	d.end(runReply{}, total(used))
	return nil
}
