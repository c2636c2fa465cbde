package router

import (
	"bytes"
	"encoding/json"
	"errors"
	"log/slog"
	"path"
	"regexp"
	"strings"

	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/schemas"
)

// readReport reads an executor's report. No member may occur twice, not even in another case. The
// content of a result, an event or a line is judged with it.
func readReport(raw []byte, report *intents.Report) error {
	if err := json.Unmarshal(raw, report); err != nil {
		return err
	}
	if again, err := intents.MarshalPlain(report); err == nil && bytes.Equal(again, raw) {
		return nil // as executors of ours write it: each member once
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(raw, &members); err != nil {
		return err
	}
	read := map[string]bool{}
	for name := range members {
		folded := strings.ToLower(strings.ToUpper(name)) // as encoding/json reads names
		if read[folded] {
			return intents.Refuse(intents.ExecutorFailed, "/"+folded, "the executor's report can be read in two ways: a member stands twice")
		}
		read[folded] = true
	}
	var refusal *intents.Refusal
	if errors.As(intents.Unambiguous(raw), &refusal) && strings.Count(refusal.Pointer, "/") == 1 {
		return intents.Refuse(intents.ExecutorFailed, refusal.Pointer, "the executor's report can be read in two ways: "+refusal.Reason)
	}
	return nil
}

// checked validates a report against the type's result schema.
func checked(row catalog.Row, report intents.Report) error {
	// Later readers of the result must be able to read what its schema was checked against.
	var refusal *intents.Refusal
	value, canonical := intents.Tree(string(report.Result))
	if report.Result != nil && !canonical && errors.As(intents.Unambiguous(report.Result), &refusal) {
		return intents.Refuse(intents.ExecutorFailed, refusal.Pointer, "the executor's result can be read in two ways: "+refusal.Reason)
	}
	switch report.Status {
	case intents.Done:
		s, err := row.ResultSchema()
		if err != nil {
			return err
		}
		var v []schemas.Violation
		if canonical {
			v = s.Validate(value)
		} else {
			v = s.ValidateBytes(report.Result)
		}
		if len(v) > 0 {
			return intents.Refuse(intents.ExecutorFailed, v[0].Pointer, "the executor's result does not match its schema: "+v[0].Reason)
		}
		return nil
	case intents.Failed, intents.StatusIndetermined: // unstarted: the router has asked again
		switch report.Code { //nolint:exhaustive // the codes that mean no failure, then any known one
		case intents.OK, intents.InFlight, intents.ApprovalRequired: // they mean that it has not failed
		case report.Code.Info().Code:
			return nil
		}
		return intents.Refuse(intents.ExecutorFailed, "", "the executor reported a failure without a code of a failure")
	default:
		return intents.Refuse(intents.ExecutorFailed, "", "the executor's answer has no status")
	}
}

// maxReason bounds an executor's reason in bytes, since records and plans contain it.
const maxReason = 2 << 10

func clip(reason string) string {
	if len(reason) > maxReason {
		reason = strings.ToValidUTF8(reason[:maxReason], "")
	}
	return reason
}

// maxEvents bounds the events of one report. searchedIDs are the members of an event's payload by
// which events are searched.
const maxEvents = 64

var searchedIDs = map[string]*regexp.Regexp{
	"skill_id": regexp.MustCompile(`^.{0,128}$`), "script_hash": regexp.MustCompile(`^sha256:[0-9a-f]{64}$`),
}

// sound removes events that the intent's executor may not report. The outcome is unaffected: an
// invalid event undoes no effect and must not stop the recorder.
func (r *Router) sound(d *decision, events []intents.ReportedEvent) []intents.ReportedEvent {
	var out []intents.ReportedEvent
	for _, f := range events {
		var payload map[string]any
		ok := len(out) < maxEvents && d.row.Reports(f.Event) && intents.Unambiguous(f.Payload) == nil && json.Unmarshal(f.Payload, &payload) == nil && payload != nil
		for name, id := range searchedIDs {
			if v, text := payload[name].(string); text && v != "" {
				ok = ok && id.MatchString(v)
			}
		}
		if !ok {
			r.cfg.Log.Warn("fact left out", slog.String("intent_id", d.env.ID()), slog.String("trace_id", d.env.TraceID()), slog.String("type", d.env.Type()), slog.String("executor", d.row.Executor))
			continue
		}
		out = append(out, f)
	}
	return out
}

// recordedResult is what the record retains of a result: the digest of a transcript, the digest of
// a stream's id, and an artifact without its link, because readers of the record must not be able
// to open them.
func recordedResult(typ string, result json.RawMessage) json.RawMessage {
	told := result
	switch typ {
	case typeLogs:
		var r catalog.LogsStreamResult
		if json.Unmarshal(result, &r) == nil {
			told = []byte(path.Base(r.StreamURL))
		}
	case typeArtifact:
		var r catalog.ArtifactGetResult
		if json.Unmarshal(result, &r) == nil {
			r.URL = ""
			if kept, err := json.Marshal(r); err == nil {
				return kept
			}
		}
	case typeTranscript:
	default:
		return result
	}
	return json.RawMessage(`{"sha256":"` + intents.Digest(told) + `"}`)
}

// typeLogs is the type whose result is the address of a stream.
const typeLogs = "logs.stream"

// typeArtifact is the type whose result has a link that opens an artifact.
const typeArtifact = "artifact.get"
