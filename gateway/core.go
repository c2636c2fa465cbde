package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"aob.dev/writ/bus"
	"aob.dev/writ/intents"
	"aob.dev/writ/internal/problem"
)

// askTimeout bounds questions about people and plans, which the others answer from memory. It leaves
// the time in which a router takes over from another one.
const askTimeout = 15 * time.Second

// ask sends a query and decodes the answer.
func ask[Reply any](ctx context.Context, conn bus.Conn, subject string, question any) (Reply, error) {
	var reply Reply
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	raw, err := json.Marshal(question)
	if err != nil {
		return reply, err
	}
	raw, err = bus.Ask(ctx, conn, subject, raw)
	if err != nil {
		return reply, unanswered(err, "the router")
	}
	var failed struct {
		Error string `json:"error"`
	}
	if err := json.Unmarshal(raw, &failed); err != nil {
		return reply, fmt.Errorf("ask %s: %w", subject, err)
	}
	if failed.Error != "" {
		return reply, fmt.Errorf("ask %s: %s", subject, failed.Error)
	}
	if err := json.Unmarshal(raw, &reply); err != nil {
		return reply, fmt.Errorf("ask %s: %w", subject, err)
	}
	return reply, nil
}

// unanswered is the error for a request that another service did not answer.
func unanswered(err error, who string) error {
	switch {
	case errors.Is(err, bus.ErrNoResponders):
		return problem.New(intents.DispatchUnavailable, "", who+" is not there")
	case errors.Is(err, context.DeadlineExceeded):
		return problem.New(intents.ExecutorTimeout, "", who+" does not answer")
	default:
		return err
	}
}
