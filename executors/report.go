package executors

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"math"
	"slices"

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
	events := append(res.Events, o.redactor.events()...)
	if f != nil {
		f.Events = events
		return failed(o.unknown(f))
	}
	return intents.Report{Status: intents.Done, Code: intents.OK, Result: raw, Events: events, Sources: intents.JoinSources(res.Sources), Images: intents.BoundImages(res.Images)}
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
	if errors.Is(context.Cause(ctx), errCancelled) {
		return failed(Fail(intents.Cancelled, "its plan was cancelled while it ran"))
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

// The closed set of obligations. The router carries out ttl_max and the gateway
// notify; an executor accepts both and does nothing.
const (
	ObligationMask     = "mask"
	ObligationMaxBytes = "max_bytes"
	ObligationTTLMax   = "ttl_max"
	ObligationDriver   = "driver"
	ObligationNotify   = "notify"
	ObligationRedact   = "redact"
)

// checkObligations refuses obligations that this executor does not know or cannot
// read: executing the intent without them would bypass policy.
func checkObligations(obs []intents.Obligation) error {
	for _, ob := range obs {
		ok := true
		switch ob.Name {
		case ObligationTTLMax, ObligationNotify:
		case ObligationMaxBytes:
			_, ok = wholeNumber(ob.Value)
		case ObligationMask:
			_, ok = texts(ob.Value)
		case ObligationDriver:
			_, ok = ob.Value.(string)
		case ObligationRedact:
			ok = redactKinds(ob.Value)
		default:
			return intents.Refuse(intents.PolicyDenied, "", "the ticket carries an obligation that this executor does not know")
		}
		if !ok {
			return intents.Refuse(intents.PolicyDenied, "", "the ticket's obligation "+ob.Name+" has a value that cannot be read")
		}
	}
	return nil
}

// Driver is the weakest sandbox driver that the intent may run under; "": no policy
// sets one.
func (o *Intent) Driver() string {
	for _, ob := range o.Ticket.Obligations {
		if name, ok := ob.Value.(string); ok && ob.Name == ObligationDriver {
			return name
		}
	}
	return ""
}

// Unobliged reports whether no obligation changes or bounds the result.
func (o *Intent) Unobliged() bool {
	return !slices.ContainsFunc(o.Ticket.Obligations, func(ob intents.Obligation) bool {
		return !slices.Contains([]string{ObligationTTLMax, ObligationDriver, ObligationNotify}, ob.Name)
	})
}

// oblige applies the obligations of a result: redact, mask, then max_bytes. They apply to the
// delivered data, in the result and in the files that it names.
func oblige(o *Intent, result json.RawMessage) (json.RawMessage, *Failure) {
	result, f := o.redactor.result(result)
	if f != nil {
		return nil, f
	}
	for _, ob := range o.Ticket.Obligations {
		if pointers, ok := texts(ob.Value); ok && ob.Name == ObligationMask {
			if isReference(result) {
				return nil, Fail(intents.OversizedOutput, "a policy masks the result, but the result is too large to be masked")
			}
			result = intents.Mask(result, pointers)
			if _, files := delivered(result); files > 0 {
				return nil, Fail(intents.OversizedOutput, "a policy masks the result, and what a file of the result holds cannot be masked")
			}
		}
	}
	for _, ob := range o.Ticket.Obligations {
		limit, ok := wholeNumber(ob.Value)
		if !ok || ob.Name != ObligationMaxBytes {
			continue
		}
		if size, _ := delivered(result); int64(len(result))+size > limit {
			return nil, Fail(intents.OversizedOutput, "the result, with the files that it names, is larger than a policy allows")
		}
	}
	return result, nil
}

// obliged applies the obligations of a result to the details of a failure. Details that violate
// them, or that a mask does not fit, are dropped.
func (f *Failure) obliged(o *Intent) *Failure {
	if f.Details == nil {
		return f
	}
	kept := *f
	masked := slices.ContainsFunc(o.Ticket.Obligations, func(ob intents.Obligation) bool { return ob.Name == ObligationMask })
	details, broken := oblige(o, f.Details)
	if kept.Details = details; masked || broken != nil {
		kept.Details = nil
	}
	kept.Events = append(slices.Clone(f.Events), o.redactor.events()...)
	return &kept
}

// isReference reports whether the data of a result is in a file, which cannot be
// masked.
func isReference(result json.RawMessage) bool {
	var ref dataRef
	return json.Unmarshal(result, &ref) == nil && ref.FileID != "" && ref.Sample != nil
}

// dataRef is an object of a result that stands for data elsewhere: the file of a large result, a
// file beside a result, or an artifact behind a link.
type dataRef struct {
	FileID   string            `json:"file_id"`
	Sample   []json.RawMessage `json:"sample"`
	Type     string            `json:"type"`
	Artifact string            `json:"artifact"`
	URL      string            `json:"url"`
}

func (n dataRef) isFile() bool {
	return n.FileID != "" && n.FileID != intents.Masked && (n.Sample != nil || n.Type != "") ||
		n.Artifact != "" && n.URL != "" && n.URL != intents.Masked
}

// delivered counts the files that a result names, wherever in it, and their bytes.
func delivered(value json.RawMessage) (size int64, files int) {
	var members map[string]json.RawMessage
	var elements []json.RawMessage
	switch {
	case json.Unmarshal(value, &members) == nil:
		var n dataRef
		if json.Unmarshal(value, &n) == nil && n.isFile() {
			var bytes float64
			_ = json.Unmarshal(members["size_bytes"], &bytes) // not given: it is small
			size, files = int64(min(max(bytes, 0), math.MaxInt32)), 1
		}
		for _, v := range members {
			elements = append(elements, v)
		}
	case json.Unmarshal(value, &elements) != nil:
		return 0, 0
	}
	for _, v := range elements {
		more, n := delivered(v)
		size, files = size+more, files+n
	}
	return size, files
}

// wholeNumber reads a count of bytes; JSON numbers arrive as float64.
func wholeNumber(v any) (int64, bool) {
	f, ok := v.(float64)
	if !ok || f < 0 || f > math.MaxInt32 || f != math.Trunc(f) {
		return 0, false
	}
	return int64(f), true
}

// texts reads one text or a list of them.
func texts(v any) ([]string, bool) {
	if s, ok := v.(string); ok {
		return []string{s}, true
	}
	list, ok := v.([]any)
	if !ok {
		return nil, false
	}
	out := make([]string, 0, len(list))
	for _, e := range list {
		s, ok := e.(string)
		if !ok {
			return nil, false
		}
		out = append(out, s)
	}
	return out, true
}
