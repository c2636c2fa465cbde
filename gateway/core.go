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

// askTimeout bounds requests that others answer from memory, and routerTimeout questions to the
// router: it leaves the time in which one takes over from another.
const (
	askTimeout    = 5 * time.Second
	routerTimeout = 15 * time.Second
)

// absentRetry is when to try again what nobody was there for.
const absentRetry = 5 * time.Second

// ask sends a request once and decodes the answer.
func ask[Reply any](ctx context.Context, conn bus.Conn, subject string, question any) (Reply, error) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	reply, err := askBy[Reply](ctx, conn.Request, subject, question)
	return reply, unanswered(err, "the router")
}

// askRouter asks the deciding router a question, which changes nothing, until it answers.
func askRouter[Reply any](ctx context.Context, conn bus.Conn, subject string, question any) (Reply, error) {
	ctx, cancel := context.WithTimeout(ctx, routerTimeout)
	defer cancel()
	reply, err := askBy[Reply](ctx, func(ctx context.Context, subject string, data []byte) ([]byte, error) {
		return bus.Ask(ctx, conn, subject, data)
	}, subject, question)
	return reply, unanswered(err, "the router")
}

func askBy[Reply any](ctx context.Context, request func(context.Context, string, []byte) ([]byte, error), subject string, question any) (Reply, error) {
	var reply Reply
	raw, err := json.Marshal(question)
	if err != nil {
		return reply, err
	}
	raw, err = request(ctx, subject, raw)
	if err != nil {
		return reply, err
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
		p := problem.New(intents.DispatchUnavailable, "", who+" is not there")
		p.RetryAfter = absentRetry
		return p
	case errors.Is(err, context.DeadlineExceeded):
		return problem.New(intents.ExecutorTimeout, "", who+" does not answer")
	default:
		return err
	}
}
