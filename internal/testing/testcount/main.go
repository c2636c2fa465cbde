// Testcount runs a command that prints the events of `go test -json`, and reads them. It prints a
// line for each package, the output of tests that fail, and the slowest tests. It fails when the
// command does, when a test failed or was skipped, and when there was none at all. The events are
// stored in a file if -events names one.
package main

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
)

// slowest is how many tests are named with their time.
const slowest = 30

// event is one line of go test -json (go doc test2json).
type event struct {
	Action, Package, Test, Output string
	Elapsed                       float64 // seconds
}

func main() {
	events := flag.String("events", "", "file that keeps the events")
	flag.Parse()
	if err := run(*events, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "testcount:", err)
		os.Exit(1)
	}
}

func run(events string, args []string) (err error) {
	if len(args) == 0 {
		return errors.New("usage: testcount [-events FILE] COMMAND ARGS…")
	}
	cmd := exec.CommandContext(context.Background(), args[0], args[1:]...) //nolint:gosec // the caller's own command
	cmd.Stderr = os.Stderr
	cmd.Env = os.Environ()
	if dir := scratch("/dev/shm"); dir != "" {
		defer func() { _ = os.RemoveAll(dir) }()
		cmd.Env = append(cmd.Env, "TMPDIR="+dir)
	}
	if dir := behindShim(); dir != "" {
		cmd.Env = append(cmd.Env, "PATH="+dir+string(os.PathListSeparator)+os.Getenv("PATH"))
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	read := io.Reader(out)
	if events != "" {
		kept, err := os.Create(events) //nolint:gosec // the caller's own file
		if err != nil {
			return err
		}
		defer func() { _ = kept.Close() }()
		read = io.TeeReader(out, kept)
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	err = count(read, os.Stdout)
	_, _ = io.Copy(io.Discard, out) // the part that count did not read
	return errors.Join(err, cmd.Wait())
}

// count writes the failures, with their output, and the totals.
func count(events io.Reader, out io.Writer) error {
	var passed, failed, skipped int
	output := map[[2]string]string{} // of the tests under way
	running := map[[2]string]bool{}
	var times []event
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
		case "run":
			running[key] = true
		case "output":
			output[key] += e.Output
		case "build-output":
			fmt.Fprint(out, e.Output)
		case "pass":
			delete(output, key)
			delete(running, key)
			if e.Test == "" {
				fmt.Fprintf(out, "ok    %6.1f s  %s\n", e.Elapsed, e.Package)
				continue
			}
			passed++
			times = append(times, e)
		case "fail":
			failed++
			fmt.Fprint(out, output[key])
			delete(running, key)
			if e.Test == "" {
				failed += sayUnended(running, e.Package, out)
			}
		case "skip":
			if e.Test == "" {
				continue // a package without tests
			}
			delete(running, key)
			skipped++
			fmt.Fprintf(out, "skipped: %s %s\n%s", e.Package, e.Test, output[key])
		}
	}
	if err := lines.Err(); err != nil {
		return err
	}
	sayTimes(times, out)
	fmt.Fprintf(out, "%d passed, %d failed, %d skipped\n", passed, failed, skipped)
	if passed == 0 || failed > 0 || skipped > 0 {
		return errors.New("a skip counts as a failure, and so does no test at all")
	}
	return nil
}

// sayUnended names the tests of a package that had not ended when its process did.
func sayUnended(running map[[2]string]bool, pkg string, out io.Writer) (n int) {
	for _, key := range slices.SortedFunc(maps.Keys(running), func(a, b [2]string) int { return cmp.Compare(a[1], b[1]) }) {
		if key[0] == pkg {
			fmt.Fprintf(out, "--- FAIL: %s (did not end, in %s)\n", key[1], pkg)
			delete(running, key)
			n++
		}
	}
	return n
}

// sayTimes names the slowest tests, without their parts.
func sayTimes(tests []event, out io.Writer) {
	tests = slices.DeleteFunc(tests, func(e event) bool { return strings.Contains(e.Test, "/") || e.Elapsed < 1 })
	slices.SortFunc(tests, func(a, b event) int { return cmp.Compare(b.Elapsed, a.Elapsed) })
	for _, e := range tests[:min(slowest, len(tests))] {
		fmt.Fprintf(out, "slow  %6.1f s  %s %s\n", e.Elapsed, e.Package, e.Test)
	}
}
