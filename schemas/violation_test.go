package schemas

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const valid = `{"version":"1.0","intent":{"type":"skill.call","args":{"skill":"feed"}},"actor":{"user_id":"ana","tenant":"default"},` +
	`"constraints":{"issued_at":"2026-11-20T10:00:00.000Z","ttl_sec":120,"audience":"writ/x","idempotency_key":"k1"}}`

func TestViolationsOfTheEnvelope(t *testing.T) {
	if v := Unsigned().ValidateBytes([]byte(valid)); v != nil {
		t.Fatalf("valid envelope: %v", v)
	}
	change := func(old, new string) string {
		t.Helper()
		if !strings.Contains(valid, old) {
			t.Fatalf("no %s", old)
		}
		return strings.Replace(valid, old, new, 1)
	}
	for _, tt := range []struct {
		name, doc string
		want      []Violation
	}{
		{"not JSON", `{"version"`, []Violation{{"", "is not JSON"}}},
		{"two values", valid + "1", []Violation{{"", "is not JSON"}}},
		{"not an object", `[]`, []Violation{{"", "must be object"}}},
		{"unknown member", change(`"version"`, `"VERSION":1,"a/b~c":1,"version"`), []Violation{{"/VERSION", "unknown member"}, {"/a~1b~0c", "unknown member"}}},
		{"no actor", change(`"actor":{"user_id":"ana","tenant":"default"},`, ``), []Violation{{"/actor", "is required"}}},
		{
			"all at once", `{"version":"2","intent":{"type":"plan"},"actor":{"user_id":7,"tenant":"default"},"constraints":{"issued_at":"2026-11-20T10:00:00.000Z","ttl_sec":301,"audience":"","idempotency_key":"k1"}}`,
			[]Violation{{"/actor/user_id", "must be string"}, {"/constraints/audience", "must have at least 1 characters"}, {"/constraints/ttl_sec", "must be at most 300"}, {"/intent/args", "is required"}, {"/version", `must be "1.0"`}},
		},
		{"ttl of zero", change(`120`, `0`), []Violation{{"/constraints/ttl_sec", "must be at least 1"}}},
		{"ttl of a half", change(`120`, `1.5`), []Violation{{"/constraints/ttl_sec", "must be integer"}}},
		{"seconds only", change(`00.000Z`, `00Z`), []Violation{{"/constraints/issued_at", "must match ^[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])T([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]\\.[0-9]{3}Z$"}}},
		{"31 February", change(`2026-11-20`, `2026-02-31`), []Violation{{"/constraints/issued_at", "must be in format date-time"}}},
		{"user with a blank", change(`"ana"`, `"a b"`), []Violation{{"/actor/user_id", "must match ^[A-Za-z0-9_.-]{1,64}$"}}},
		{"user with a newline", change(`"ana"`, `"ana\n"`), []Violation{{"/actor/user_id", "must match ^[A-Za-z0-9_.-]{1,64}$"}}},
		{"args of an array", change(`{"skill":"feed"}`, `[]`), []Violation{{"/intent/args", "must be object"}}},
		{"huge number", change(`{"skill":"feed"}`, `{"n":1e999999}`), []Violation{{"/intent/args/n", "number is out of range"}}},
		{"too deep", change(`{"skill":"feed"}`, `{"n":`+strings.Repeat("[", 300)+strings.Repeat("]", 300)+`}`), []Violation{{"/intent/args/n" + strings.Repeat("/0", 253), "is nested too deeply"}}},
		{"label of a number", change(`"constraints"`, `"context":{"labels":{"a":1}},"constraints"`), []Violation{{"/context/labels/a", "must be string"}}},
		{"label's name", change(`"constraints"`, `"context":{"labels":{"a b":""}},"constraints"`), []Violation{{"/context/labels/a b", "unknown member"}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, Unsigned().ValidateBytes([]byte(tt.doc))); diff != "" {
				t.Errorf("violations (-want +got):\n%s", diff)
			}
		})
	}
}

func TestViolationsOfArguments(t *testing.T) {
	for _, tt := range []struct {
		typ, doc string
		want     []Violation
	}{
		{"write_memory", `{"label":"a"}`, []Violation{{"", "must have exactly one of the members data, from"}}},
		{"write_memory", `{"label":"a","data":1,"from":"f_1"}`, []Violation{{"", "must have exactly one of the members data, from"}}},
		{"write_memory", `{"label":"a","data":null}`, nil},
		{"write_memory", `{"label":"A","data":null}`, []Violation{{"/label", "must match ^[a-z0-9_]{1,64}$"}}},
		{"admin.put", `{}`, []Violation{{"", "must have exactly one of the members api_key, user, role, new_tenant, data"}}},
		{"skill.call", `{"skill":"a","input":{},"from":"f_1"}`, []Violation{{"", "has a form that is not allowed"}}},
		{"skill.call", `{"skill":"a","input":[]}`, []Violation{{"/input", "must be object"}}},
		{"step.finish", `{"task_id":"t","status":"done"}`, []Violation{{"", "must have exactly one of the members memory_key, reply, intent"}}},
		{"step.finish", `{"task_id":"t","status":"failed","memory_key":"a:b:c:d"}`, []Violation{{"/memory_key", "is not allowed"}, {"/reason", "is required"}}},
		{"plan.close", `{"plan_id":"p","epoch":1,"status":"failed","response":"x"}`, []Violation{{"/failure", "is required"}, {"/response", "is not allowed"}}},
		{"read_lines", `{"file_id":"f","start":-1,"n":1001}`, []Violation{{"/n", "must be at most 1000"}, {"/start", "must be at least 0"}}},
		{"intent.resolve", `{"intent_id":"x","status":"maybe","reason":""}`, []Violation{{"/intent_id", "must match ^sha256:[0-9a-f]{64}$"}, {"/reason", "must have at least 1 characters"}, {"/status", `must be one of "done", "failed"`}}},
		{"soul.get", `{"x":1}`, []Violation{{"/x", "unknown member"}}},
	} {
		t.Run(tt.typ, func(t *testing.T) {
			s, err := IntentArgs(tt.typ)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, s.ValidateBytes([]byte(tt.doc))); diff != "" {
				t.Errorf("%s: violations (-want +got):\n%s", tt.doc, diff)
			}
		})
	}
}

// TestReasonsHoldNoValues plants a secret wherever a value can stand.
func TestReasonsHoldNoValues(t *testing.T) {
	const secret = "hunter2 "
	doc := `{"version":"` + secret + `","intent":{"type":"` + secret + `","args":"` + secret + `"},"actor":{"user_id":"` + secret + `","tenant":"` + secret + `","grant":"` + secret + `","roles":["` + secret + `","` + secret + `"]},` +
		`"constraints":{"issued_at":"` + secret + `","ttl_sec":"` + secret + `","audience":["` + secret + `"],"idempotency_key":"` + secret + `"},"trace_id":"` + secret + `","sig":"` + secret + `","context":{"agent":"` + secret + `","cause":"` + secret + `"}}`
	found := Unsigned().ValidateBytes([]byte(doc))
	if len(found) < 12 {
		t.Errorf("%d violations", len(found))
	}
	for _, v := range found {
		if strings.Contains(v.Reason, "hunter2") || strings.Contains(v.Pointer, "hunter2") {
			t.Errorf("%s: %s", v.Pointer, v.Reason)
		}
	}
}
