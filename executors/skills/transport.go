package skills

import (
	"context"
	"errors"
	"strings"

	"aob.dev/writ/executors"
	"aob.dev/writ/executors/mcp"
	"aob.dev/writ/intents"
)

// The state of an exchange until the server has answered.
var (
	unsent     = &intents.Transport{Failure: true}
	unanswered = &intents.Transport{Sent: true, Failure: true}
)

// exchanged is the outcome of an exchange with a server. A server that answers, even with a refusal
// or a tool's error, has not failed. nil: it may not be called, which is no evidence about it.
func exchanged(sent bool, err error) *intents.Transport {
	var e *mcp.Error
	switch known := errors.As(err, &e); {
	case !known:
		return &intents.Transport{Sent: sent, Failure: err != nil}
	case e.Barred:
		return nil
	}
	return &intents.Transport{Sent: sent && !e.Undelivered, Failure: e.Broken()}
}

// located is approved for a call. If the skill's own server could not be asked, the server has
// failed.
func (s *skills) located(ctx context.Context, o *executors.Intent, name string) (Skill, intents.Pin, error) {
	o.Exchange(unsent)
	skill, pin, err := s.approved(ctx, o, name)
	o.Exchange(nil)
	if err == nil {
		return skill, pin, nil
	}
	for _, h := range s.Registry.Health() {
		if h.Err != nil && strings.HasPrefix(pin.Skill, h.Name+".") {
			o.Exchange(exchanged(false, h.Err))
		}
	}
	return skill, pin, err
}
