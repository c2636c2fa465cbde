package cli

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"text/tabwriter"
	"text/template"
	"time"

	"github.com/rogpeppe/go-internal/txtar"
	"golang.org/x/term"

	"aob.dev/writ/intents"
	"aob.dev/writ/internal/config"
	"aob.dev/writ/internal/logging"
	"aob.dev/writ/internal/visible"
	"aob.dev/writ/policies"
)

// printable is a text of a model, a script or a server on a terminal: it controls nothing, and
// hides nothing.
func printable(s string) string { return visible.Prose(s) }

// indentDepth bounds the indentation of data. Each level makes every line below it
// longer, so the output of nested brackets would grow with the square of the depth.
const indentDepth = 32

// printJSON writes data as one document, indented unless it is nested too deep.
// Characters that nobody sees, or that control a terminal, are written as escapes.
func printJSON(w io.Writer, v any) error {
	var doc bytes.Buffer
	enc := json.NewEncoder(&doc)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return err
	}
	text := visible.ProseJSON(doc.Bytes())
	if intents.Nesting(text) <= indentDepth {
		var lines bytes.Buffer
		if err := json.Indent(&lines, text, "", "  "); err != nil {
			return err
		}
		text = lines.Bytes()
	}
	_, err := w.Write(text)
	return err
}

// barWidth is in characters.
const barWidth = 30

// bar shows on a terminal how far long work has come. Elsewhere, and with --json, it
// shows nothing. done removes it.
func (c *command) bar() (show func(done, total int64), done func()) {
	out := c.std.Err
	if c.asJSON || !terminal(out) {
		return nil, func() {}
	}
	p, last := painter(c.std, out), ""
	show = func(n, total int64) {
		line := fmt.Sprintf("%d records", n)
		if total > 0 {
			full := int(min(n, total) * barWidth / total)
			line = fmt.Sprintf("%s%s %d of %d records", p.bold(strings.Repeat("█", full)), strings.Repeat("·", barWidth-full), n, total)
		}
		if line != last {
			fmt.Fprint(out, "\r"+line)
			last = line
		}
	}
	return show, func() { fmt.Fprint(out, "\r"+strings.Repeat(" ", len([]rune(last)))+"\r") }
}

// aligned prints a table: the tab-separated cells of the lines are aligned.
func aligned(print func(t io.Writer)) string {
	var b strings.Builder
	t := tabwriter.NewWriter(&b, 0, 4, 2, ' ', 0)
	print(t)
	_ = t.Flush() // a builder takes everything
	return b.String()
}

// oneLine is the beginning of a text that others wrote, on one line.
func oneLine(s string, most int) string {
	r := []rune(printable(strings.Join(strings.Fields(s), " ")))
	if len(r) > most {
		return string(r[:most-1]) + "…"
	}
	return string(r)
}

// short shows the beginning of a digest.
func short(id string) string {
	if len(id) > 19 {
		return id[:19] + "…"
	}
	return id
}

func orDash(s []string) string {
	if len(s) == 0 {
		return "–"
	}
	return strings.Join(s, ",")
}

func terminal(w io.Writer) bool {
	if a, ok := w.(aside); ok {
		return a.terminal
	}
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// paint colours text for a terminal, unless NO_COLOR is set.
type paint struct{ on bool }

func painter(std IO, w io.Writer) paint { return paint{terminal(w) && std.Env("NO_COLOR") == ""} }

func (p paint) wrap(code, s string) string {
	if !p.on {
		return s
	}
	return "\x1b[" + code + "m" + s + "\x1b[0m"
}

func (p paint) bold(s string) string  { return p.wrap("1", s) }
func (p paint) dim(s string) string   { return p.wrap("2", s) }
func (p paint) green(s string) string { return p.wrap("32", s) }
func (p paint) red(s string) string   { return p.wrap("31", s) }

//go:embed templates.txt
var textFile []byte

// printed are the output templates of commands, by name.
var printed = func() *template.Template {
	all := template.New("texts").Funcs(template.FuncMap{
		"join": strings.Join, "printable": printable, "oneLine": oneLine, "short": short, "orDash": orDash, "passed": func(cases []policies.Case) int { return len(cases) - failed(cases) },
		"visible": func(s string) string { return visible.Text(s, "") },
		"json":    func(raw json.RawMessage) string { return visible.Text(string(visible.JSON(raw)), "") },
		"utc":     func(at time.Time) string { return at.UTC().Format(time.RFC3339) },
		"percent": func(share float64) string { return fmt.Sprintf("%.1f", 100*share) },
		"cost": func(cost *float64) string {
			if cost == nil {
				return "" // the model has no price
			}
			return fmt.Sprintf("cost %.4f", *cost)
		},
		"seconds": func(ms int64) string { return fmt.Sprintf("%.1f", float64(ms)/1000) },
	})
	for _, f := range txtar.Parse(textFile).Files {
		template.Must(all.New(f.Name).Parse(string(f.Data)))
	}
	return all
}()

// render fills in the text of a name.
func render(name string, data any) string {
	fill := func(w io.Writer) {
		if err := printed.ExecuteTemplate(w, name, data); err != nil {
			fmt.Fprintln(w, err) // a fault of ours, which TestTexts finds
		}
	}
	if strings.HasSuffix(name, ".table") {
		return aligned(fill)
	}
	var b strings.Builder
	fill(&b)
	return b.String()
}

// logger writes messages to standard error: text for a terminal, JSON elsewhere.
func logger(std IO, level, format string) *slog.Logger {
	var l slog.Level
	if err := l.UnmarshalText([]byte(level)); err != nil {
		l = slog.LevelInfo
	}
	return logging.New(std.Err, l, format == "text" || format != "json" && terminal(std.Err))
}

// lastLines is how long a process that ends waits for whoever reads its log.
const lastLines = time.Second

// served is standard error of a process that serves: it never waits for its reader, and the process
// outlives the reader. done writes the rest.
func served(std IO, c config.Config) (_ IO, dropped func() int64, done func()) {
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE) // a write then fails, and does not end the process
	told := logger(std, c.LogLevel, c.LogFormat)
	a := logging.NewAsyncWriter(std.Err, func(n int64) {
		told.Warn("lines of the log were dropped, since nobody read it in time", slog.Int64("lines", n))
	})
	std.Err = aside{a, terminal(std.Err)}
	slog.SetDefault(logger(std, c.LogLevel, c.LogFormat)) // of libraries that have no logger of ours
	return std, a.Dropped, func() { a.Close(lastLines) }
}

// aside remembers whether a person looks on.
type aside struct {
	*logging.AsyncWriter
	terminal bool
}
