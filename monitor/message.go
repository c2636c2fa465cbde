package monitor

import (
	"fmt"
	"time"

	"aob.dev/writ/internal/notify"
)

// Message is an incident for people, and as JSON for webhooks.
func (i Incident) Message() notify.Message {
	i.Owed = nil
	at := i.Since
	if i.Until != nil {
		at = *i.Until
	}
	return notify.Message{ID: fmt.Sprintf("%s.%d", i.Rule, at.UnixMilli()), Title: title(i), Text: text(i), Data: i}
}

func title(i Incident) string {
	if i.Until != nil {
		return i.Rule + " is over"
	}
	return fmt.Sprintf("%s (%s): %s", i.Rule, i.Severity, i.Says)
}

// text of an incident for people.
func text(i Incident) string {
	if i.Until != nil {
		return fmt.Sprintf("It lasted from %s to %s.", i.Since.UTC().Format(time.RFC3339), i.Until.UTC().Format(time.RFC3339))
	}
	return fmt.Sprintf("Seen: %s.\nWhat to do: %s.\nSince %s.", i.Observed, i.Do, i.Since.UTC().Format(time.RFC3339))
}
