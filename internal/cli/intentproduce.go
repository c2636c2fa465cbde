package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"aob.dev/writ/intents/catalog"
)

func intentProduce(c *command) {
	c.personFlags()
	c.jsonFlag()
	submit := c.Flags().Bool("submit", false, "submit the intent, too")
	c.run = func(args []string) error {
		to, err := c.client()
		if err != nil {
			return err
		}
		var made struct {
			Envelope json.RawMessage `json:"envelope"`
			Type     string          `json:"type"`
			Reason   string          `json:"reason"`
		}
		if err := to.Post(c.Context(), "/v1/produce", map[string]string{"request": strings.Join(args, " ")}, &made); err != nil {
			return err
		}
		if made.Envelope == nil {
			return errors.New(printable(made.Reason))
		}
		if !*submit {
			_, err := fmt.Fprintf(c.std.Out, "%s\n", bytes.TrimSpace(made.Envelope))
			return err
		}
		if err := c.send(made.Envelope, false); err != nil {
			return err
		}
		if made.Type == "logs.stream" {
			fmt.Fprintf(c.std.Err, "follow it: %s\n", followHint(made.Envelope))
		}
		return nil
	}
}

// followHint is the command that follows the log that an intent is about.
func followHint(signed []byte) string {
	var intent struct {
		Intent struct {
			Args catalog.LogsStream `json:"args"`
		} `json:"intent"`
	}
	_ = json.Unmarshal(signed, &intent) // it was signed
	of := intent.Intent.Args
	line := "writ logs " + of.RunID + " -f"
	if of.Filter == catalog.LogsErrors {
		line += " --errors"
	}
	if of.NodeID != "" {
		line += " --node " + of.NodeID
	}
	return line
}
