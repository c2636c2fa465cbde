package policies

import (
	"strings"
	"testing"
)

// TestCheck: the report of Check on sound and unsound trees.
func TestCheck(t *testing.T) {
	r, err := Check(Embedded())
	if err != nil {
		t.Fatal(err)
	}
	if r.Digest != Embedded().Digest() || len(r.Rules) < 12 || len(r.Volatile) != 0 {
		t.Errorf("%+v", r)
	}
	for i := 1; i < len(r.Rules); i++ {
		if r.Rules[i-1].ID >= r.Rules[i].ID {
			t.Error("rules are not sorted")
		}
	}
	noisy := strings.Replace(tiny, `input.intent.type != "unlisted"`, `input.now != input.constraints.idempotency_key`, 1)
	if r, err = Check(source(noisy)); err != nil || len(r.Volatile) != 2 {
		t.Errorf("reads %v, warns of %v, %v", r.Reads, r.Volatile, err)
	}
	for name, c := range map[string]struct {
		source Source
		says   string
	}{
		"network":     {source(tiny, "package x\n\ny := http.send({})\n"), "http.send: forbidden"},
		"clock":       {source(tiny, "package x\n\ny := time.now_ns()\n"), "time.now_ns: forbidden"},
		"unknown":     {source(tiny, "package x\n\ny := no.such()\n"), "undefined function no.such"},
		"strict":      {source(tiny, "package x\n\ny if {\n\tz := 1\n\ttrue\n}\n"), "assigned var z unused"},
		"no metadata": {source(tiny, "package writ.ext.x\n\ndeny contains {} if input.x\n"), "METADATA"},
		"bad test":    {Source{"a.rego": []byte(tiny), "a_test.rego": []byte("package x\n\ntest_y if nothing\n")}, "nothing"},
	} {
		if _, err := Check(c.source); err == nil || !strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), "forbidden") != strings.Contains(c.says, "forbidden") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestSuite: a test that passes, one that fails, one that is skipped, and both kinds of table
// cells.
func TestSuite(t *testing.T) {
	s := Suite{Source: Source{"a.rego": []byte(tiny), "a_test.rego": []byte(`package a_test

import data.writ.authz

test_allows if authz.allow with input as {"intent": {"type": "any"}}

test_fails if authz.allow with input as {"intent": {"type": "unlisted"}}

todo_test_later if false
`)}}
	cases, err := s.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]bool{}
	for _, c := range cases {
		got[c.Name] = c.Passed
		if c.Passed == (c.Reason != "") {
			t.Errorf("%+v", c)
		}
	}
	if len(got) != 3 || !got["test_allows"] || got["test_fails"] || got["todo_test_later"] {
		t.Errorf("%v", got)
	}
	table, err := ParseTable(strings.NewReader("principals: {a: {actor: {tenant: acme}}}\nintents: {yes: {intent: {type: any}}, no: {intent: {type: unlisted}}, denied: {intent: {type: denied}}, held: {intent: {type: held}}}\n" +
		"data: {approvers: {acme: [ben]}}\nexpect: {a: {yes: allow, denied: {deny: [t.other]}, held: {hold: [t.hold]}}}\n"))
	if err != nil {
		t.Fatal(err)
	}
	s.Tables = map[string]*Table{"t.yaml": table}
	more, err := s.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	failed := 0
	for _, c := range more[3:] {
		if !c.Passed {
			failed++
		}
		if c.Suite != "t.yaml" {
			t.Errorf("%+v", c)
		}
	}
	if len(more) != 7 || failed != 1 {
		t.Errorf("%d cases, %d failed", len(more), failed)
	}
	if cases, err := (Suite{Source: source(tiny)}).Run(t.Context()); err != nil || len(cases) != 0 {
		t.Errorf("without tests: %v, %v", cases, err)
	}
}
