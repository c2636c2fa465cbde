package gateway

import (
	"cmp"

	"github.com/gin-gonic/gin"

	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/state/agents"
)

// chat is POST /chat/{session_id}: a conversation, of which the last message of the user counts.
// The answer is the stream of POST /agent/run. The header X-Agent-Schema-Name names the agent;
// the default is run_agent, or general.
func (g *Gateway) chat(c *gin.Context, who caller) error {
	var body struct {
		Messages []chatMessage `json:"messages"`
	}
	if err := readBody(c, &body); err != nil {
		return err
	}
	q, err := conversation(body.Messages, "/messages")
	if err != nil {
		return err
	}
	q.about, q.transient = catalog.TurnContext{}, catalog.Transient{} // the session has the other messages
	t, reply, err := g.begin(c, who, claim{Session: c.Param("session_id")}, namedAgent{agent: cmp.Or(c.GetHeader("X-Agent-Schema-Name"), g.cfg.RunAgent, agents.General)}, q)
	if err != nil {
		return err
	}
	if reply.Approval != nil {
		return g.reply(c, reply)
	}
	return g.streamTurn(c, t)
}
