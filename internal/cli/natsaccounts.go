package cli

import (
	"fmt"
	"strings"

	"aob.dev/writ/cell"
)

func accountsCommand(c *command) {
	var processes, executors []string
	var dir string
	var f catalogFlags
	c.answer = func([]string) (answer, error) {
		outside := map[string][]string{}
		for _, e := range executors {
			name, list, _ := strings.Cut(e, ":")
			var named []string
			if list != "" {
				named = strings.Split(list, ",")
			}
			types, err := typesOf(c.Context(), &f, name, named)
			if err != nil {
				return answer{}, usage(fmt.Errorf("--executor %s: %w", e, err))
			}
			outside[name] = types
		}
		config, made, err := cell.Accounts(processes, outside, dir)
		if err != nil {
			return answer{}, usage(err)
		}
		a := answer{data: map[string]any{"config": string(config), "made": append([]string{}, made...)}, text: string(config)}
		for _, file := range made {
			a.note += fmt.Sprintf("made the key %s: give it to that process alone\n", file)
		}
		return a, nil
	}
	c.Flags().StringArrayVar(&processes, "process", nil, "ROLE:NAME of a process (repeatable)")
	c.Flags().StringArrayVar(&executors, "executor", nil, "external executor NAME, or NAME:TYPE,TYPE for some of its types alone (repeatable)")
	f.add(c)
	c.Flags().StringVar(&dir, "keys", "nats-keys", "directory of the processes' keys; missing ones are made")
	c.mustGive("process")
}
