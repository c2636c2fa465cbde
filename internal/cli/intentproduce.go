package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

func intentProduce(c *command) {
	c.personFlags()
	c.jsonFlag()
	c.run = func(args []string) error {
		var made struct {
			Envelope json.RawMessage `json:"envelope"`
			Reason   string          `json:"reason"`
		}
		if err := c.post("/v1/produce", map[string]string{"request": strings.Join(args, " ")}, &made); err != nil {
			return err
		}
		if made.Envelope == nil {
			return errors.New(printable(made.Reason))
		}
		_, err := fmt.Fprintf(c.std.Out, "%s\n", bytes.TrimSpace(made.Envelope))
		return err
	}
}
