package cli

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"aob.dev/writ/audit"
	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/datadir"
)

func intentResolve(c *command) {
	c.operatorFlags()
	c.ids = &recordedIntents
	reason := c.Flags().String("reason", "", "what you found; it is recorded")
	c.answer = func(args []string) (answer, error) {
		if args[1] != string(intents.Done) && args[1] != string(intents.Failed) {
			return answer{}, usage(fmt.Errorf("%q is neither done nor failed", args[1]))
		}
		if *reason == "" {
			return answer{}, usage(errors.New("--reason: say what you found; it is recorded"))
		}
		a, err := intentAnswer(c.intent("intent.resolve", catalog.IntentResolve{IntentID: args[0], Status: args[1], Reason: *reason}))
		a.note = "intent " + args[0] + " is recorded as " + args[1] + "\n"
		return a, err
	}
}

// erasable are the values of --parts.
var erasable = []string{catalog.ErasesEnvelope, catalog.ErasesResult, catalog.ErasesBlobs}

func intentErase(c *command) {
	var reason string
	var parts []string
	position := int64(-1)
	c.tenantFlags()
	c.ids = &recordedIntents
	c.answer = func(args []string) (a answer, err error) {
		switch {
		case reason == "":
			return a, usage(errors.New("--reason: say why; it is recorded"))
		case len(parts) == 0 || slices.ContainsFunc(parts, func(p string) bool { return !slices.Contains(erasable, p) }):
			return a, usage(fmt.Errorf("--parts: give some of %v, separated by commas", erasable))
		}
		if position < 0 {
			if position, err = c.positionOf(args[0]); err != nil {
				return a, err
			}
		}
		done, err := c.tenantIntent("record.erase", func(tenant string) (any, error) {
			return catalog.RecordErase{Tenant: tenant, IntentID: args[0], Position: position, Parts: parts, Reason: reason}, nil
		})
		if done.Changes = nil; err == nil {
			a = answer{data: done, text: done.IntentID + "\n"}
			a.note = "the parts of intent " + args[0] + " are gone; copies may stay:\n- " + strings.Join(catalog.RemainingCopies(parts), "\n- ") + "\n"
		}
		return a, err
	}
	c.Flags().StringVar(&reason, "reason", "", "why; it is recorded and stays, so it must not contain what you erase")
	c.Flags().StringSliceVar(&parts, "parts", erasable[:2], "what to erase: envelope, result, blobs")
	c.Flags().Int64Var(&position, "position", -1, "position of the intent's record (default: looked up in the data directory)")
}

// positionOf is the position of an intent: of the accepted one, or else of its first refusal.
func (c *command) positionOf(id string) (position int64, err error) {
	err = c.archive(func(a *datadir.Archive) error {
		found, err := audit.Find(c.Context(), a.Records, id)
		if err != nil {
			return fmt.Errorf("%w: give its position with --position if the data directory is on another machine", err)
		}
		position = found[0].Position
		for _, s := range found {
			if s.IntentID == id && (s.Code == intents.OK || s.Code == intents.ApprovalRequired) {
				position = s.Position
			}
		}
		return nil
	})
	return position, err
}
