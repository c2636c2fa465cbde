package docs

import (
	_ "embed"
	"fmt"
	"strings"

	"aob.dev/writ/internal/config"
)

// What the page of settings says around its table.
var (
	//go:embed configuration_head.txt
	configurationHead string
	//go:embed configuration_tail.txt
	configurationTail string
)

// configurationPage is the table of settings for people.
func configurationPage() []byte {
	var b strings.Builder
	b.WriteString("# Configuration\n\n" + generated + configurationHead)
	b.WriteString("| key | default | variable | flag | what it is |\n| :-- | :-- | :-- | :-- | :-- |\n")
	for _, s := range config.Settings {
		what, flag := strings.ReplaceAll(s.Help, "openai:<model name>", "`openai:<model name>`")+s.More, "`--"+s.Flag()+"`"
		if s.Secret {
			what, flag = what+"; not a flag, because others can read a command line", ""
		}
		if _, list := s.Bind(new(config.Config)).(*[]string); list {
			what += "; in a variable separated by `;` or lines, the flag may be repeated"
		}
		value := ""
		if s.Default != nil {
			value = fmt.Sprintf("`%v`", s.Default)
		}
		fmt.Fprintf(&b, "| `%s` | %s | `%s` | %s | %s |\n", s.Name, value, strings.Join(s.Variables(), "`, `"), flag, what)
	}
	b.WriteString("\n" + configurationTail)
	return []byte(b.String())
}
