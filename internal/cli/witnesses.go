package cli

import (
	"fmt"

	"aob.dev/writ/internal/config"
	"aob.dev/writ/internal/node"
)

// witnessesOf a configuration.
func witnessesOf(c config.Config) ([]node.Witness, error) {
	var out []node.Witness
	for _, s := range c.Witnesses {
		w, err := node.ParseWitness(s)
		if err != nil {
			return nil, fmt.Errorf("witnesses: %w", err)
		}
		out = append(out, w)
	}
	return out, nil
}
