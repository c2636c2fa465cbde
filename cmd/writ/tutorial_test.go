package main

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"

	"github.com/rogpeppe/go-internal/testscript"
)

// usual is where the pages have a skill server.
const usual = "127.0.0.1:9000"

// lesson is a page as its reader follows it.
type lesson struct {
	ts        *testscript.TestScript
	w         *world
	terminals map[string]*terminal // by program
	address   string               // of the skill server
	output    string               // what was last run has printed
}

// terminal has a program that goes on in the background.
type terminal struct {
	cmd *exec.Cmd
	out string // file
}

// follow does what a page says, block by block: follow PAGE. A block "LANG FILE" is saved; one
// of "sh" is run; one of "sh terminal" goes on in the background, and ends what its program did
// there before; lines of "text" are in what was printed, in this order, "…" standing for
// anything. Blocks without a language are for the reader alone.
func follow(ts *testscript.TestScript, w *world, args []string) {
	want(ts, args, 1, "follow PAGE")
	page := string(must[[]byte](ts)(os.ReadFile(filepath.Join("..", "..", filepath.FromSlash(args[0])))))
	free := must[net.Listener](ts)(net.Listen("tcp", "127.0.0.1:0"))
	page = strings.ReplaceAll(page, usual, free.Addr().String())
	page = strings.ReplaceAll(page, `"127.0.0.1", 9000`, strings.Replace(`"`+free.Addr().String(), ":", `", `, 1))
	ts.Check(free.Close())
	l := &lesson{ts: ts, w: w, address: free.Addr().String(), terminals: map[string]*terminal{}}
	w.services = append(w.services, l.end)
	ran := 0
	for i, block := range strings.Split(page, "\n```") {
		if info, text, ok := strings.Cut(block, "\n"); i%2 == 1 && ok && info != "" {
			l.do(info, text+"\n")
			ran++
		}
	}
	if ran == 0 {
		ts.Fatalf("%s shows nothing to do", args[0])
	}
	l.end()
}

func (l *lesson) do(info, text string) {
	switch lang, file, _ := strings.Cut(info, " "); {
	case info == "sh terminal":
		l.start(text)
	case info == "sh":
		cmd := l.command(text)
		out, err := cmd.CombinedOutput()
		if l.output = string(out); err != nil {
			l.ts.Fatalf("%v:\n%s\n%s", err, text, out)
		}
	case info == "text":
		l.await(text)
	case file != "":
		name := l.ts.MkAbs(file)
		l.ts.Check(os.MkdirAll(filepath.Dir(name), 0o700))
		l.ts.Check(os.WriteFile(name, []byte(text), 0o600))
	default:
		l.ts.Fatalf("a block of %s: what becomes of it?", lang)
	}
}

func (l *lesson) command(lines string) *exec.Cmd {
	cmd := exec.Command("bash", "-e", "-o", "pipefail", "-c", lines)
	cmd.Dir, cmd.Env = l.ts.MkAbs("."), environ(l.ts, l.w)
	return cmd
}

// start has a program go on, once it listens.
func (l *lesson) start(line string) {
	program, _, _ := strings.Cut(line, " ")
	l.stop(l.terminals[program])
	t := &terminal{cmd: l.command("exec " + line), out: filepath.Join(l.w.dir, program+".out")}
	f := must[*os.File](l.ts)(os.Create(t.out))
	t.cmd.Stdout, t.cmd.Stderr = f, f
	l.ts.Check(t.cmd.Start())
	l.ts.Check(f.Close())
	l.terminals[program] = t
	if program == "writ" {
		l.await("writ is up on …")
		return
	}
	until(l.ts, func() (bool, string) {
		c, err := net.Dial("tcp", l.address)
		if err != nil {
			return false, err.Error()
		}
		return c.Close() == nil, "it listens"
	})
}

// await waits until lines were printed in this order, by what was last run or in a terminal.
func (l *lesson) await(lines string) {
	var all []string
	for line := range strings.Lines(lines) {
		all = append(all, strings.ReplaceAll(regexp.QuoteMeta(strings.TrimSpace(line)), "…", ".*"))
	}
	pattern := regexp.MustCompile("(?s)" + strings.Join(all, ".*"))
	until(l.ts, func() (bool, string) {
		seen := l.output
		for _, t := range l.terminals {
			seen += string(must[[]byte](l.ts)(os.ReadFile(t.out)))
		}
		return pattern.MatchString(seen), "not printed:\n" + lines + "\nbut:\n" + seen
	})
}

// stop is Ctrl-C.
func (l *lesson) stop(t *terminal) {
	if t == nil {
		return
	}
	_ = t.cmd.Process.Signal(syscall.SIGINT)
	_ = t.cmd.Wait()
}

func (l *lesson) end() {
	for program, t := range l.terminals {
		l.stop(t)
		delete(l.terminals, program)
	}
}
