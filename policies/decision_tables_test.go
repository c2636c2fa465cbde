package policies

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestTables runs the decision tables over the embedded tree.
func TestTables(t *testing.T) {
	files, err := filepath.Glob("testdata/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no decision tables: %v", err)
	}
	e := engine(t, Embedded())
	for _, name := range files {
		t.Run(filepath.Base(name), func(t *testing.T) {
			f, err := os.Open(name)
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			table, err := ParseTable(f)
			if err != nil {
				t.Fatal(err)
			}
			cells, err := table.run(t.Context(), e)
			if err != nil {
				t.Fatal(err)
			}
			if len(cells) != len(table.Principals)*len(table.Intents) {
				t.Errorf("%d cells decided", len(cells))
			}
			for _, c := range cells {
				if c.Wrong != "" {
					t.Errorf("%s × %s: %s", c.Principal, c.Intent, c.Wrong)
				}
			}
		})
	}
}

// TestTableFindsWrong: a table that expects something else fails, in each way.
func TestTableFindsWrong(t *testing.T) {
	const head = "principals: {a: {actor: {tenant: acme}}}\nintents: {allowed: {intent: {type: allowed}}, denied: {intent: {type: denied}}, held: {intent: {type: held}}}\n" +
		"data: {approvers: {acme: [ben]}}\n"
	e := engine(t, source(tiny))
	for expect, wrong := range map[string]string{
		"{}": "allowed: allow [], but is not listed; held: hold [t.hold], but is not listed",
		"{a: {allowed: allow, held: {hold: [t.hold], approvers: [ben]}}}":             "",
		"{a: {allowed: allow, denied: allow, held: {hold: [t.hold]}}}":                "denied: deny [t.deny], want allow []",
		"{a: {allowed: allow, denied: {deny: [x]}, held: {hold: [t.hold]}}}":          "denied: deny [t.deny], want deny [x]",
		"{a: {allowed: allow, held: {hold: [t.hold], approvers: [cleo]}}}":            "held: approvers [ben], want [cleo]",
		"{a: {allowed: {deny: [t.deny]}, held: {hold: [t.hold], approvers: [ben]}}}":  "allowed: allow [], want deny [t.deny]",
		"{a: {allowed: allow, denied: {deny: [t.deny]}, held: {hold: [t.hold, no]}}}": "held: hold [t.hold], want hold [no t.hold]",
	} {
		table, err := ParseTable(strings.NewReader(head + "expect: " + expect))
		if err != nil {
			t.Fatal(err)
		}
		cells, err := table.run(t.Context(), e)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, c := range cells {
			if c.Wrong != "" {
				got = append(got, c.Intent+": "+strings.TrimSuffix(c.Wrong, ", so it must be denied"))
			}
		}
		if strings.Join(got, "; ") != wrong {
			t.Errorf("expect %s\nfinds %q\nwant  %q", expect, got, wrong)
		}
	}
}

func TestParseTableRefuses(t *testing.T) {
	for doc, says := range map[string]string{
		"principal: {}": "not found",
		"principals: {a: {actor: {tenant: acme}}}": "no principals or no intents",
		"intents: {a: {}}":                         "no principals or no intents",
		"principals: {a: {actor: {tenant: acme}}}\nintents: {b: {}}\nexpect: {c: {b: allow}}":                       `no principal "c"`,
		"principals: {a: {actor: {tenant: acme}}}\nintents: {b: {}}\nexpect: {a: {c: allow}}":                       `no intent "c"`,
		"principals: {a: {actor: {tenant: acme}}}\nintents: {b: {}}\nexpect: {a: {b: perhaps}}":                     "want allow",
		"principals: {a: {actor: {tenant: acme}}}\nintents: {b: {}}\nexpect: {a: {b: {deny: []}}}":                  "want allow",
		"principals: {a: {actor: {tenant: acme}}}\nintents: {b: {}}\nexpect: {a: {b: {deny: [x], approvers: [y]}}}": "want allow",
	} {
		if _, err := ParseTable(strings.NewReader(doc)); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%q: error %v, want one that says %q", doc, err, says)
		}
	}
}
