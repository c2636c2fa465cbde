package gateway

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strings"

	"github.com/gin-gonic/gin"

	"aob.dev/writ/bus"
	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/problem"
)

// A chat front end asks its model for more than answers: for a title of the chat, tags, questions
// that may follow. Under a key of a front end the model alone answers these: without a plan.

// frontEndPrompts are the beginnings of the default templates of front ends.
var frontEndPrompts = []string{
	// Open WebUI: backend/open_webui/config.py, DEFAULT_…_PROMPT_TEMPLATE
	"### Task:\nGenerate a concise title summarizing the chat history.",
	"### Task:\nGenerate a concise, 3-5 word title with an emoji summarizing the chat history.", // of earlier versions
	"### Task:\nGenerate 1-3 broad tags categorizing the main themes of the chat history,",
	"### Task:\nSuggest 3-5 relevant follow-up questions or prompts that the user might naturally ask next in this conversation",
	"### Task:\nAnalyze the chat history to determine the necessity of generating search queries,",
	"### Task:\nGenerate a detailed prompt for am image generation task based on the given language and context.",
	"### Task:\nYou are an autocompletion system. Continue the text in `<text>` based on the **completion type** in `<type>`",
	"Your task is to reflect the speaker's likely facial expression through a fitting emoji.",
	// LibreChat: danny-avila/agents, src/utils/title.ts
	"Provide a concise, 5-word-or-less title for the conversation, using title case conventions.",
}

// isFrontEndPrompt reports whether a request is one message of the user that begins like a template.
func isFrontEndPrompt(messages []chatMessage) bool {
	if len(messages) != 1 || messages[0].Role != "user" {
		return false
	}
	text := messages[0].text()
	return slices.ContainsFunc(frontEndPrompts, func(begins string) bool { return strings.HasPrefix(text, begins) })
}

// answerPrompt has the model alone answer a prompt of a front end, at a rate of its own. The usage of
// its tokens is recorded, and nothing else.
func (g *Gateway) answerPrompt(c *gin.Context, who caller, r openaiRequest, prompt string, dialectOf func(turn, *sse, openaiRequest) dialect) error {
	ctx, cancel := context.WithTimeout(c.Request.Context(), g.pace.wait)
	defer cancel()
	who.rate = g.prompts
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
	t.plan = t.id // the id of the answer
	d := dialectOf(t, newSSE(c.Writer), r)
	if !r.Stream {
		c.JSON(http.StatusOK, d.whole(made.Text, runReply{}, total(used)))
		return nil
	}
	d.begin()
	d.say(made.Text)
	d.end(runReply{}, total(used))
	return nil
}
