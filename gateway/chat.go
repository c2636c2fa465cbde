package gateway

import "github.com/gin-gonic/gin"

// chat is POST /chat/{session_id}: a conversation, of which the last message of the user
// counts. The answer is the stream of POST /agent/run. The header X-Agent-Schema-Name
// names the agent.
func (g *Gateway) chat(c *gin.Context, who caller) error {
	var body struct {
		Messages []said `json:"messages"`
	}
	if err := readBody(c, &body); err != nil {
		return err
	}
	message, err := lastOfUser(body.Messages, "/messages")
	if err != nil {
		return err
	}
	t, reply, err := g.begin(c, who, claim{Session: c.Param("session_id")}, named{agent: c.GetHeader("X-Agent-Schema-Name")}, message)
	if err != nil {
		return err
	}
	if reply.Approval != nil {
		return g.reply(c, reply)
	}
	return g.streamTurn(c, t)
}
