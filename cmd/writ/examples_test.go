package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"
)

// example runs the fenced lines of a page of docs, or of README.md, that hold a
// text, as a reader would: example PAGE TEXT.
func example(ts *testscript.TestScript, w *world, args []string) {
	want(ts, args, 2, "example PAGE TEXT")
	page := string(must[[]byte](ts)(os.ReadFile(filepath.Join("..", "..", filepath.FromSlash(args[0])))))
	for i, block := range strings.Split(page, "\n```") {
		lang, lines, ok := strings.Cut(block, "\n")
		if i%2 == 1 && ok && lang == "" && strings.Contains(lines, args[1]) {
			shell(ts, w, lines)
			return
		}
	}
	ts.Fatalf("%s shows no command with %q", args[0], args[1])
}

// helped runs the commands that a command's help shows: helped ARGS….
func helped(ts *testscript.TestScript, w *world, args []string) {
	want(ts, args, 1, "helped COMMAND…")
	cmd := exec.Command("writ", append(args, "--help")...)
	cmd.Env = environ(ts, w)
	help := string(must[[]byte](ts)(cmd.Output()))
	text, _, _ := strings.Cut(help, "\nUsage:")
	ran := 0
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "  writ ") {
			shell(ts, w, line)
			ran++
		}
	}
	if ran == 0 {
		ts.Fatalf("the help shows no command:\n%s", help)
	}
}

// shell runs lines that must all succeed, also within pipes.
func shell(ts *testscript.TestScript, w *world, lines string) {
	cmd := exec.Command("bash", "-e", "-o", "pipefail", "-c", lines)
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = ts.MkAbs("."), environ(ts, w), ts.Stdout(), ts.Stderr()
	if err := cmd.Run(); err != nil {
		ts.Fatalf("%v:\n%s", err, lines)
	}
}
