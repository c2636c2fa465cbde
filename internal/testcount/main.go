// Testcount reads the events of `go test -json` and says how many tests passed. It
// fails when one failed or was skipped, and when there was none at all.
package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
)

// event is one line of go test -json (go doc test2json).
type event struct {
	Action, Package, Test, Output string
}

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: testcount EVENTS")
		os.Exit(2)
	}
	f, err := os.Open(os.Args[1]) //nolint:gosec // the caller's own file
	if err == nil {
		err = count(f, os.Stdout)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "testcount:", err)
		os.Exit(1)
	}
}

// count writes what went wrong, with its output, and the sums.
func count(events io.Reader, out io.Writer) error {
	var passed, failed, skipped int
	output := map[[2]string]string{} // of the tests under way
	lines := bufio.NewScanner(events)
	lines.Buffer(nil, 4<<20)
	for lines.Scan() {
		var e event
		if json.Unmarshal(lines.Bytes(), &e) != nil {
			fmt.Fprintln(out, lines.Text()) // a line of make
			continue
		}
		key := [2]string{e.Package, e.Test}
		switch e.Action {
		case "output":
			output[key] += e.Output
		case "build-output":
			fmt.Fprint(out, e.Output)
		case "pass":
			if delete(output, key); e.Test != "" {
				passed++
			}
		case "fail":
			failed++
			fmt.Fprint(out, output[key])
		case "skip":
			if e.Test == "" {
				continue // a package without tests
			}
			skipped++
			fmt.Fprintf(out, "skipped: %s %s\n%s", e.Package, e.Test, output[key])
		}
	}
	if err := lines.Err(); err != nil {
		return err
	}
	fmt.Fprintf(out, "%d passed, %d failed, %d skipped\n", passed, failed, skipped)
	if passed == 0 || failed > 0 || skipped > 0 {
		return errors.New("a skip counts as a failure, and so does no test at all")
	}
	return nil
}
