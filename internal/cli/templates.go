package cli

import (
	_ "embed"
	"fmt"
	"io"
	"strings"
	"text/template"
	"time"

	"github.com/rogpeppe/go-internal/txtar"
)

//go:embed templates.txt
var textFile []byte

// printed are the output templates of commands, by name.
var printed = func() *template.Template {
	all := template.New("texts").Funcs(template.FuncMap{
		"join": strings.Join, "printable": printable, "oneLine": oneLine, "short": short, "orDash": orDash, "pendingLine": pendingLine,
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
