package main

import (
	"regexp"

	"github.com/rogpeppe/go-internal/testscript"
)

// capture is "capture NAME REGEXP": a variable gets the first group's match in the last command's
// output.
func capture(ts *testscript.TestScript, _ *world, args []string) {
	if len(args) != 2 {
		ts.Fatalf("usage: capture NAME REGEXP")
	}
	re, err := regexp.Compile(args[1])
	ts.Check(err)
	m := re.FindStringSubmatch(ts.ReadFile("stdout"))
	if len(m) != 2 {
		ts.Fatalf("%s does not match what was printed", args[1])
	}
	ts.Setenv(args[0], m[1])
}
