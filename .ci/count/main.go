// Count reads the events of `go test -json` and says how many tests passed. It
// fails when one failed or was skipped, and when there was none at all.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
)

// event is one line of go test -json (go doc cmd/test2json).
type event struct {
	Action, Package, Test, Output string
}

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: count EVENTS")
		os.Exit(2)
	}
	if err := count(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func count(name string) error {
	f, err := os.Open(name) //nolint:gosec // the caller's own file
	if err != nil {
		return err
	}
	defer f.Close()
	var passed, failed, skipped int
	output := map[[2]string]string{} // of the tests under way
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 4<<20)
	for lines.Scan() {
		var e event
		if json.Unmarshal(lines.Bytes(), &e) != nil {
			fmt.Println(lines.Text()) // a build error, or a line of make
			continue
		}
		key := [2]string{e.Package, e.Test}
		switch e.Action {
		case "output":
			output[key] += e.Output
		case "build-output":
			fmt.Print(e.Output)
		case "pass":
			if delete(output, key); e.Test != "" {
				passed++
			}
		case "fail":
			failed++
			fmt.Print(output[key])
		case "skip":
			if e.Test == "" {
				continue // a package without tests
			}
			skipped++
			fmt.Printf("skipped: %s %s\n%s", e.Package, e.Test, output[key])
		}
	}
	if err := lines.Err(); err != nil {
		return err
	}
	fmt.Printf("%d passed, %d failed, %d skipped\n", passed, failed, skipped)
	if passed == 0 || failed > 0 || skipped > 0 {
		return fmt.Errorf("a skip counts as a failure, and so does no test at all")
	}
	return nil
}
