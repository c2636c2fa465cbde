package skills

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"time"

	"aob.dev/writ/executors"
	"aob.dev/writ/executors/mcp"
	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/visible"
)

// toolText bounds the text of a skill about its failure, in bytes.
const toolText = 4 << 10

// failure makes the outcome of a failed call. A call that was certainly not sent may be
// sent again. A skill that must run at most once and may have run is INDETERMINATE.
func (s *skills) failure(ctx context.Context, in invocation, res *mcp.Result, err error) error {
	var e *mcp.Error
	if !errors.As(err, &e) {
		return err
	}
	f := s.judge(ctx, in, e)
	if res != nil && res.IsError && res.IsJSON {
		_ = f.WithDetails(map[string]any{"error": visible.Cut(e.Reason, toolText), "structured": json.RawMessage(res.Data)})
	}
	if mayHaveRun(e) {
		in.unknown(f)
	}
	if !e.Undelivered {
		size := 0
		if res != nil {
			size = len(res.Data)
		}
		f.Events = append(f.Events, called(in, size, false))
	}
	return f
}

func (s *skills) judge(ctx context.Context, in invocation, e *mcp.Error) *executors.Failure {
	if end, ok := ctx.Deadline(); ok && !time.Now().Before(end) {
		<-ctx.Done() // its timer and that of the attempt fire in any order, and the caller checks ctx
	}
	switch {
	case errors.Is(e, mcp.ErrPrincipal):
		// An incident: suppressed, counted, alerted, never retried.
		s.Log.LogAttrs(ctx, slog.LevelError, "security incident: a skill answered for another user, and nothing of it was shown: look at its server and its credentials, and take the server out of the configuration meanwhile",
			slog.String("skill", in.pin.Skill), slog.String("server", in.skill.Server), slog.String("intent_id", in.intent.ID))
		return executors.Fail(intents.ExecutorFailed, "data unavailable").WithEvent("skill.principal_mismatch", map[string]any{"skill_id": in.pin.Skill})
	case errors.Is(e, mcp.ErrUnconnected):
		return connectFirst(e)
	case errors.Is(e, mcp.ErrChanged):
		return executors.Fail(intents.ExecutorFailed, "manifest changed: approve the new version")
	case errors.Is(e, mcp.ErrTooLarge):
		return executors.Fail(intents.OversizedOutput, "the skill's answer is too large")
	case errors.Is(e, mcp.ErrRefused):
		return executors.Fail(intents.ExecutorFailed, "the skill server refused the call: see its credentials and address")
	case errors.Is(e, mcp.ErrTool):
		return executors.Fail(intents.ExecutorFailed, "the skill reports a failure").WithDetails(toolError(e))
	case errors.Is(e, mcp.ErrSchema):
		return executors.Fail(intents.ExecutorFailed, "the skill's answer breaks its own schema").WithDetails(toolError(e))
	case e.Undelivered:
		return executors.Unavailable("the skill server does not answer", e)
	case !repeatable(in.pin):
		return executors.Fail(intents.Indeterminate, "the skill server did not answer, and the skill may have run")
	}
	f := executors.Unavailable("the skill server did not answer", e)
	if errors.Is(e, context.DeadlineExceeded) {
		f.Code, f.Reason = intents.ExecutorTimeout, "the skill server did not answer in time"
	}
	f.Retryable = false // the client has repeated it already
	return f
}

// connectFirst is the failure of a call for a user who is not connected to the server. Nothing was sent.
func connectFirst(e *mcp.Error) *executors.Failure {
	f := executors.Fail(intents.MalformedArgs, e.Reason)
	if e.Link == "" {
		return f
	}
	return f.WithDetails(map[string]string{catalog.ConnectDetail: e.Link})
}

// mayHaveRun reports whether the tool may have had its effect: it received the call, did not report
// a failure itself, and its server did not refuse the call.
func mayHaveRun(e *mcp.Error) bool {
	said := errors.Is(e, mcp.ErrTool) && !e.Unexplained
	return !e.Undelivered && !said && !errors.Is(e, mcp.ErrRefused) && !errors.Is(e, mcp.ErrChanged)
}

// unknown makes the failure of a call that must not happen twice, and may have happened, one
// whose effect is not known: nothing runs it again. A message to a remote agent is part of a
// conversation, and fails.
func (in invocation) unknown(f *executors.Failure) {
	if repeatable(in.pin) || in.pin.Kind == intents.KindAgent || f.Code == intents.Indeterminate {
		return
	}
	f.Code, f.Retryable, f.Reason = intents.Indeterminate, false, f.Reason+"; the skill may have acted"
}

// toolError is the server's text, already without control characters. Only the caller
// gets it.
func toolError(e *mcp.Error) any {
	return map[string]string{"error": visible.Cut(e.Reason, toolText)}
}

// lost is the failure of a call whose answer could not be stored. The skill ran: if that must not
// happen twice, the intent must not be sent again.
func (*skills) lost(in invocation, events []intents.ReportedEvent, err error) error {
	var f *executors.Failure
	if !errors.As(err, &f) {
		return err
	}
	f.Events = append(f.Events, events...)
	if !repeatable(in.pin) {
		f.Retryable = false
	}
	in.unknown(f)
	return f
}
