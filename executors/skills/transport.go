package skills

import (
	"context"
	"errors"
	"strings"

	"aob.dev/writ/executors"
	"aob.dev/writ/executors/mcp"
	"aob.dev/writ/intents"
)

// What is known of a server until it has answered.
var (
	unsent     = &intents.Transport{Failure: true}
	unanswered = &intents.Transport{Sent: true, Failure: true}
)

// exchanged is how an exchange with a server ended. Whatever it answers, a refusal or an error of
// a tool too, it has not failed. nil: it may not be called, which says nothing of it.
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

// located is approved for a call. Where its own server could not be asked, that has failed.
func (s *skills) located(ctx context.Context, o *executors.Order, name string) (Skill, intents.Pin, error) {
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
