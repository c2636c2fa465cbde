package cli

import (
	"fmt"

	"aob.dev/writ/internal/node"
)

func accountsCommand(c *command) {
	var processes []string
	var dir string
	c.answer = func([]string) (answer, error) {
		config, made, err := node.Accounts(processes, dir)
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
	c.Flags().StringVar(&dir, "keys", "nats-keys", "directory of the processes' keys; missing ones are made")
	c.mustGive("process")
}
