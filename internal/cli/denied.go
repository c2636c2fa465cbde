package cli

import (
	"errors"
	"fmt"

	"aob.dev/writ/intents"
	"aob.dev/writ/internal/client"
)

// explain is the line that says how to learn why an order was refused.
func explain(intentID string) string { return "why: writ policy explain " + printable(intentID) }

// denied names the order that an error refuses and says how to learn why, where
// the refusal is in the record; else nothing.
func denied(err error) string {
	var p *client.Error
	if !errors.As(err, &p) || p.IntentID == "" {
		return ""
	}
	switch p.Code {
	case intents.PolicyDenied, intents.RBACForbidden:
	default:
		if p.Position == nil {
			return ""
		}
	}
	return fmt.Sprintf("order %s\n%s", printable(p.IntentID), explain(p.IntentID))
}
