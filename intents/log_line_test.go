package intents

import (
	"slices"
	"testing"
)

// TestLinesOfOthers: a line of a foreign executor names that executor, whatever it claims;
// our own executors name their sources.
func TestLinesOfOthers(t *testing.T) {
	sources := []string{SourceWrit, "python:stderr", "", "x-acme:mine", "x-acmeother"}
	for executor, want := range map[string][]string{
		"x-acme": {"x-acme:writ", "x-acme:python:stderr", "x-acme:", "x-acme:mine", "x-acme:x-acmeother"},
		"python": sources,
	} {
		var lines []Line
		for _, source := range sources {
			lines = append(lines, Line{Source: source, Text: "all is well"})
		}
		for range 2 { // again, as lines that come one after the other are
			lines = BoundLines(executor, lines)
		}
		var got []string
		for _, x := range lines {
			got = append(got, x.Source)
		}
		if !slices.Equal(want, got) {
			t.Errorf("%s: %q, want %q", executor, got, want)
		}
	}
}
