package gateway

import (
	"encoding/json"
	"net/http"

	"github.com/gin-gonic/gin"

	"aob.dev/writ/intents/catalog"
)

// submits signs a type for the user of a request: its arguments are the body, if there is one,
// otherwise the parameters.
func (g *Gateway) submits(typ string, parameters func(*gin.Context) (any, error)) func(*gin.Context, caller) error {
	return func(c *gin.Context, who caller) error {
		var args any
		var err error
		if c.Request.Method == http.MethodPost {
			var body []byte
			body, err = readJSON(c)
			args = json.RawMessage(body)
		} else {
			args, err = parameters(c)
		}
		if err != nil {
			return err
		}
		a, err := g.identify(c.Request.Context(), who, claim{})
		if err != nil {
			return err
		}
		out, err := request[json.RawMessage](c.Request.Context(), g, a, typ, args, "")
		return respond(c, out, err)
	}
}

func removal(c *gin.Context) (any, error) {
	return catalog.KBRemove{DocumentID: c.Param("id"), Scope: c.Query("scope")}, nil
}
