package storage_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"aob.dev/writ/intents"
	"aob.dev/writ/storage"
)

// TestOutcomeParts: an outcome comes back from its parts as it was, from one part
// as it was written before, and without what was erased.
func TestOutcomeParts(t *testing.T) {
	done := intents.Outcome{
		Target: 7, Attempt: 2, Status: intents.Done, Code: intents.OK, Result: json.RawMessage(`{"rows":[1]}`), MS: 12,
		Events: []intents.ReportedEvent{{Event: "skill.called", Payload: json.RawMessage(`{"skill_id":"a"}`)}},
	}
	failed := intents.Outcome{Target: 8, Attempt: 1, Status: intents.Failed, Code: intents.ExecutorFailed, Reason: "line 3: ana", Retryable: true}
	violated := intents.Outcome{Target: 9, Attempt: 1, Status: intents.Failed, Code: intents.ContractViolation, Reason: "/rows: is required"}
	without := func(o intents.Outcome, reason string) intents.Outcome {
		o.Result, o.Reason = nil, reason
		return o
	}
	for name, c := range map[string]struct {
		out   intents.Outcome
		erase []string
		want  intents.Outcome
		parts int
	}{
		"done":             {done, nil, done, 2},
		"failed":           {failed, nil, failed, 2},
		"violated":         {violated, nil, violated, 1},
		"without result":   {done, []string{storage.PartResult, storage.PartReason}, without(done, storage.ErasedReason), 1},
		"without words":    {failed, []string{storage.PartResult, storage.PartReason}, without(failed, storage.ErasedReason), 1},
		"nothing to erase": {violated, []string{storage.PartResult, storage.PartReason}, violated, 1},
	} {
		rec, err := storage.OutcomeRecord(time.UnixMilli(0), c.out)
		if err != nil {
			t.Fatal(err)
		}
		rec, _ = rec.Without(c.erase...)
		got, err := rec.Outcome()
		if err != nil || len(rec.Parts) != c.parts {
			t.Errorf("%s: %d parts, %v", name, len(rec.Parts), err)
		}
		if d := cmp.Diff(c.want, got); d != "" {
			t.Errorf("%s: -want +got:\n%s", name, d)
		}
		whole, err := json.Marshal(c.out)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := storage.ReadOutcome(map[string]json.RawMessage{storage.PartOutcome: whole}); (err != nil) != (c.out.Result != nil) {
			t.Errorf("%s, in one part: %v", name, err)
		}
	}
}

// TestRecordDigest: the digest is over the RFC 8785 bytes of the map, whatever its names.
func TestRecordDigest(t *testing.T) {
	for _, r := range []storage.Record{
		{},
		{Parts: map[string]json.RawMessage{"outcome": []byte("{}"), "envelope": []byte("[]"), "x_1": nil}, Salts: map[string][]byte{"outcome": []byte("salt")}},
		{Parts: map[string]json.RawMessage{"outcome": []byte("{}")}, Erased: map[string]string{"result": "0a1b", "outcome": "ff"}},
		{Parts: map[string]json.RawMessage{`a":"b","c`: []byte("{}")}},
		{Erased: map[string]string{"a": `00","b":"11`}},
		{Erased: map[string]string{"A": "1", "é": "2", "\U0001F600": "3", "\uFFFD": "4", "a<b": "5"}},
	} {
		parts := map[string]string{}
		for name, digest := range r.Erased {
			parts[name] = digest
		}
		for name, body := range r.Parts {
			parts[name] = storage.PartDigest(r.Salts[name], body)
		}
		if want, err := storage.DigestOf(parts); err != nil || r.Digest() != want {
			t.Errorf("%v: %s, %v", parts, r.Digest(), err)
		}
	}
}
