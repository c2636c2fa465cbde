package schemas

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"testing"
)

// names returns n distinct strings as a JSON list.
func names(n int) string {
	out := make([]string, n)
	for i := range out {
		out[i] = fmt.Sprintf(`"n%d"`, i)
	}
	return strings.Join(out, ",")
}

func many(n int, item string) string { return strings.Repeat(item+",", n-1) + item }

// bombs are small schemas and documents that would cause a great deal of work or of findings.
func bombs() map[string][2]string {
	refs := many(25, `{"$ref":"#/$defs/r"}`)
	dependents := make([]string, 200)
	for i := range dependents {
		dependents[i] = fmt.Sprintf(`"d%d":[%s]`, i, names(150))
	}
	present := make([]string, 200)
	for i := range present {
		present[i] = fmt.Sprintf(`"d%d":1`, i)
	}
	chain := `"n1200":{"type":"string"}`
	for i := range 1200 {
		chain += fmt.Sprintf(`,"n%d":{"$ref":"#/$defs/n%d"}`, i, i+1)
	}
	nest := func(n int, in string) string { return strings.Repeat("[", n) + in + strings.Repeat("]", n) }
	return map[string][2]string{
		"names by reference":         {`{"$defs":{"r":{"required":[` + names(520) + `]}},"items":{"allOf":[` + refs + `]}}`, `[` + many(14_000, "{}") + `]`},
		"names":                      {`{"items":{"required":[` + names(30_000) + `]}}`, `[` + many(11_000, "{}") + `]`},
		"dependent names":            {`{"items":{"dependentRequired":{` + strings.Join(dependents, ",") + `}}}`, `[` + many(400, `{`+strings.Join(present, ",")+`}`) + `]`},
		"unknown dependents":         {`{"items":{"dependentRequired":{` + strings.ReplaceAll(strings.Join(dependents, ","), `"d`, `"e`) + `}}}`, `[` + many(14_000, `{}`) + `]`},
		"long chain":                 {`{"$defs":{` + chain + `},"items":{"$ref":"#/$defs/n0"}}`, `[` + many(20_000, "1") + `]`},
		"heavy constants":            {`{"items":{"allOf":[` + many(80, `{"const":[`+many(300, `"x"`)+`]}`) + `]}}`, `[` + many(50, `[`+many(300, `"x"`)+`]`) + `]`},
		"nested unique items":        {`{"$defs":{"u":{"uniqueItems":true,"items":{"$ref":"#/$defs/u"}}},"$ref":"#/$defs/u"}`, nest(200, many(20_000, "{}"))},
		"large numbers":              {`{"items":{"allOf":[` + many(100, `{"multipleOf":0.001,"maximum":7}`) + `]}}`, `[` + many(7_000, "1e999") + `]`},
		"findings far down":          {`{"$defs":{"n":{"items":{"$ref":"#/$defs/n"},"anyOf":[{"type":"array"},{"type":"null"}]}},"$ref":"#/$defs/n"}`, nest(200, many(20_000, "1"))},
		"findings below a long name": {`{"additionalProperties":{"items":{"type":"null"}}}`, `{"` + strings.Repeat("x", 1<<20) + `":[` + many(20_000, "1") + `]}`},
		"a long enumeration":         {`{"items":{"enum":[` + names(20_000) + `]}}`, `[` + many(40, `"x"`) + `]`},
	}
}

// TestBombsAreBounded: for any schema and document, checking takes memory in proportion to both,
// and reports a bounded number of findings.
func TestBombsAreBounded(t *testing.T) {
	for name, bomb := range bombs() {
		t.Run(name, func(t *testing.T) {
			s, err := Compile([]byte(bomb[0]))
			if err != nil {
				t.Fatal(err)
			}
			v, err := Decode([]byte(bomb[1]))
			if err != nil {
				t.Fatal(err)
			}
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			found := s.Validate(v)
			runtime.ReadMemStats(&after)
			if len(found) == 0 || len(found) > MaxViolations {
				t.Errorf("%d violations", len(found))
			}
			said := 0
			for _, v := range found {
				said += len(v.Pointer) + len(v.Reason)
			}
			if said > MaxViolations*(maxPointer+maxReason+8) {
				t.Errorf("violations of %d bytes", said)
			}
			if allocated := (after.TotalAlloc - before.TotalAlloc) >> 20; allocated > 256 {
				t.Errorf("%d MiB allocated", allocated)
			}
		})
	}
}

// TestValidationWaitsForNoOther: a schema that is in use elsewhere is compiled once more.
func TestValidationWaitsForNoOther(t *testing.T) {
	s, err := Compile([]byte(`{"type":"integer","title":"busy"}`))
	if err != nil {
		t.Fatal(err)
	}
	for range spare + 2 {
		if _, err := s.machines.take(); err != nil { // never given back
			t.Fatal(err)
		}
		if v := s.ValidateBytes([]byte(`1`)); v != nil {
			t.Errorf("violations %v", v)
		}
	}
}

func TestValidationEndsWithItsContext(t *testing.T) {
	s, err := Compile([]byte(`{"items":{"type":"integer"},"title":"late"}`))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	got := s.ValidateWithin(ctx, []byte(`[`+many(10_000, `[1]`)+`]`))
	if len(got) != 1 || got[0].Reason != outOfTime {
		t.Errorf("violations %v", got)
	}
}

// TestFindingsAreBounded: for a document that breaks its schema in very many ways, the first are
// reported, in order.
func TestFindingsAreBounded(t *testing.T) {
	s, err := Compile([]byte(`{"properties":{"a":{"required":[` + names(500) + `]}}}`))
	if err != nil {
		t.Fatal(err)
	}
	got := s.ValidateBytes([]byte(`{"a":{}}`))
	if len(got) != MaxViolations || got[0] != (Violation{"/a/n0", "is required"}) {
		t.Errorf("%d violations, first %v", len(got), got[:min(len(got), 1)])
	}
}
