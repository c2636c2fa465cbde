package gateway

import (
	"github.com/gin-gonic/gin"

	"aob.dev/writ/intents/catalog"
)

// resumedSession is the answer of POST /agent/sessions/{session_id}/resume.
type resumedSession struct {
	SessionID string `json:"session_id"`
	From      string `json:"resumed_from"`
	Turns     int    `json:"turns"` // copied from the ended session
}

// resumeSession continues a user's session that has ended, or is full, under a new id.
func (g *Gateway) resumeSession(c *gin.Context, a actor) error {
	ctx, cancel := lasting(c.Request.Context(), openTimeout)
	defer cancel()
	s, err := request[catalog.Session](ctx, g, a, "session.resume", catalog.SessionResume{SessionID: newID("sess"), From: c.Param("session_id")}, "")
	return respond(c, resumedSession{s.SessionID, s.ResumedFrom, len(s.TurnHistory)}, err)
}
