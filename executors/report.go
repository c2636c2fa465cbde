package executors

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
)

// encodeReport never fails: a report that does not marshal becomes a failure.
func encodeReport(r intents.Report) []byte {
	raw, err := intents.MarshalPlain(r)
	if err != nil {
		return []byte(`{"status":"failed","code":"EXECUTOR_FAILED","reason":"the report is not JSON"}`)
	}
	return raw
}

func succeeded(o *Intent, res *Result) intents.Report {
	if res == nil {
		res = &Result{}
	}
	raw, err := intents.MarshalPlain(res.Value)
	if err != nil {
		return failed(o.unknown(Fail(intents.ExecutorFailed, "the result is not JSON")))
	}
	raw, f := oblige(o, raw)
	if f != nil {
		f.Events = res.Events
		return failed(o.unknown(f))
	}
	return intents.Report{Status: intents.Done, Code: intents.OK, Result: raw, Events: res.Events}
}

func failed(f *Failure) intents.Report {
	status := intents.Failed
	if f.Code == intents.Indeterminate {
		status = intents.StatusIndetermined
	}
	return intents.Report{Status: status, Code: f.Code, Reason: f.Reason, Retryable: f.Retryable, Result: f.Details, Events: f.Events}
}

// refused reports a dispatch that was not carried out. It may be sent again only
// where the deadline passed on the way; past begin_by, under another ticket.
func refused(err error) intents.Report {
	if errors.Is(err, errUnstarted) {
		return intents.Report{Status: intents.Unstarted, Code: intents.ExecutorTimeout, Reason: "begin_by has passed; nothing was started"}
	}
	r := intents.Report{Status: intents.Failed, Code: intents.CodeOf(err), Reason: "dispatch refused"}
	var refusal *intents.Refusal
	if errors.As(err, &refusal) {
		r.Reason, r.Retryable = refusal.Reason, refusal.Code == intents.ExecutorTimeout
	}
	return r
}

// failure reports a handler's error. Only a *Failure is reported as it is; the text
// of any other error goes to the log only.
func (s *Service) failure(ctx context.Context, o *Intent, err error) intents.Report {
	var f *Failure
	if errors.As(err, &f) {
		if f.cause != nil {
			s.logFailure(ctx, o, f.cause)
		}
		return failed(f.obliged(o))
	}
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		return cut(ctx, o)
	}
	s.logFailure(ctx, o, err)
	return failed(o.unknown(Fail(intents.ExecutorFailed, "the executor failed; its log says why")))
}

func (s *Service) logFailure(ctx context.Context, o *Intent, err error) {
	s.cfg.Log.LogAttrs(ctx, slog.LevelError, "handler failed", o.attr(), slog.String("error", err.Error()))
}

// attr identifies the intent in the log.
func (o *Intent) attr() slog.Attr {
	return slog.Group("intent", slog.String("intent_id", o.ID), slog.String("type", o.Type), slog.String("trace_id", o.TraceID))
}

// cut reports a run that was interrupted: at its deadline (EXECUTOR_TIMEOUT), or because the
// service stops (ABANDONED). An intent that must happen at most once, and may have happened, is
// INDETERMINATE.
func cut(ctx context.Context, o *Intent) intents.Report {
	if o.Effect() == catalog.Once {
		return failed(Fail(intents.Indeterminate, "the run was cut off, and its effect is not known"))
	}
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return failed(Fail(intents.ExecutorTimeout, "the intent did not end before its deadline"))
	}
	return failed(Fail(intents.Abandoned, "the executor is stopping"))
}

// unknown marks a failure after the handler ran as one with unknown effect, if the intent must
// happen at most once, so that nothing runs it again. Only a handler can report that it had no
// effect.
func (o *Intent) unknown(f *Failure) *Failure {
	if o.Effect() == catalog.Once {
		f.Code, f.Retryable, f.Reason = intents.Indeterminate, false, f.Reason+"; its effect is not known"
	}
	return f
}

// Effect of executing the intent: that of its catalog row, or of the approved pin
// of the skill that it calls. An unknown one, such as that of a vendor's type, counts
// as once.
func (o *Intent) Effect() catalog.Effect {
	row, ok := catalog.Builtin().Lookup(o.Type)
	switch {
	case !ok:
		return catalog.Once
	case row.Effect != catalog.EffectPin:
		return row.Effect
	}
	var call struct {
		Skill string `json:"skill"`
	}
	if json.Unmarshal(o.Args, &call) == nil {
		for _, pin := range o.Ticket.Pins {
			if pin.Skill == call.Skill {
				return catalog.Effect(pin.Effect)
			}
		}
	}
	return catalog.Once
}
