package cli

import (
	"context"
	"encoding/json"
	"time"

	"aob.dev/writ/internal/client"
)

// healthTime bounds the wait for an answer, so that a probe has one too.
const healthTime = 5 * time.Second

func healthCommand(c *command) {
	c.placeFlags()
	c.answer = func([]string) (answer, error) {
		ctx, cancel := context.WithTimeout(c.Context(), healthTime)
		defer cancel()
		var raw json.RawMessage
		var doc struct{ Status string }
		if err := (client.Client{URL: c.url}).Get(ctx, "/readyz", &raw); err != nil {
			return answer{}, err
		}
		err := json.Unmarshal(raw, &doc)
		return answer{data: raw, text: printable(doc.Status) + "\n"}, err
	}
}
