package docs

import (
	_ "embed"
	"fmt"
	"strings"
	"time"

	"aob.dev/writ/agentic"
	"aob.dev/writ/executors/files"
	"aob.dev/writ/executors/logs"
	"aob.dev/writ/executors/memory"
	"aob.dev/writ/executors/sandbox"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/config"
	"aob.dev/writ/state/document"
	"aob.dev/writ/storage"
)

// What the page of settings says around its table.
var (
	//go:embed configuration_head.txt
	configurationHead string
	//go:embed configuration_tail.txt
	configurationTail string
)

// configurationPage lists the settings for people.
func configurationPage() []byte {
	var b strings.Builder
	b.WriteString("# Configuration\n\n" + generated + configurationHead)
	for _, s := range config.Settings {
		what := strings.ReplaceAll(s.Help, "openai:<model name>", "`openai:<model name>`") + s.More
		if s.Secret {
			what += " (*secret*)"
		}
		if _, list := s.Bind(new(config.Config)).(*[]string); list {
			what += " (*list*)"
		}
		value, aliases := "", ""
		if s.Default != nil {
			value = fmt.Sprintf(" (`%v`)", s.Default)
		}
		if also := s.Variables()[1:]; len(also) > 0 {
			aliases = "; also `" + strings.Join(also, "`, `") + "`"
		}
		fmt.Fprintf(&b, "* `%s`%s: %s%s\n", s.Name, value, what, aliases)
	}
	b.WriteString("\n" + configurationTail + constants())
	return []byte(b.String())
}

// constants lists the values without a setting, as the code has them.
func constants() string {
	var b strings.Builder
	b.WriteString("\n## Values without a setting\n\n")
	for _, row := range []struct {
		what  string
		value any
	}{
		{"bytes from which a result becomes a file", storage.InlineLimit},
		{"lines of such a file in its sample", catalog.SampleLines},
		{"time limit of a script", sandbox.DefaultWall},
		{"bytes that a script may print", sandbox.DefaultOutput},
		{"age at which files of steps are removed", files.SweepAge},
		{"interval of that check", files.SweepEvery},
		{"steps of a plan", catalog.MaxSteps},
		{"times that a plan is revised", catalog.MaxReplans},
		{"wait for another's write to the same memory", memory.LockWait},
		{"lifetime of a log stream's address", logs.Life},
		{"bytes of an agent's file", document.MaxFile},
		{"tokens of a session that a turn reads, for a model without `context_tokens`", agentic.HistoryTokens},
		{"tokens of a session that a turn reads at most", agentic.MostHistory},
		{"summaries of a session that a turn reads", agentic.HistoryMoments},
		{"time after which a call without a status shows one", agentic.StatusAfter},
	} {
		value := fmt.Sprint(row.value)
		if d, ok := row.value.(time.Duration); ok {
			value = fmt.Sprintf("%v s", d.Seconds())
		}
		fmt.Fprintf(&b, "* %s: %s\n", row.what, value)
	}
	b.WriteString("\nEach agent's [`max_fan_out`](agents.md) limits how many agents it asks at once.\n")
	return b.String()
}
