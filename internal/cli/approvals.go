package cli

import (
	"encoding/json"
	"errors"
	"net/url"
	"time"

	"aob.dev/writ/bus"
	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/datadir"
)

const approvalsPath = "/agent/approvals"

var approvalRows = []row{
	{use: "list", short: "List held intents: your own, and those that you may decide", make: asks(request[bus.ApprovalsReply]{
		path: approvalsPath, page: true,
		query: []param{{flag: "mine", help: "only intents that you asked for", yes: true}, {flag: "type", help: "only intents of this type"}},
		text:  shown[bus.ApprovalsReply]("approvals"),
		none:  "no intent waits for your decision, and none of yours waits for others",
	})},
	{use: "show INTENT_ID", short: "Show a held intent", make: asks(request[bus.PendingApproval]{
		path: approvalsPath + "/{}", ids: &pendingIntents, text: func(_ []string, h bus.PendingApproval) string { return h.Text() },
	})},
	{use: "approve INTENT_ID", short: "Approve a held intent", make: approvalsDecide(catalog.DecisionApprove)},
	{use: "withdraw INTENT_ID", short: "End a standing approval that was given with this intent", make: approvalsDecide(catalog.DecisionWithdraw)},
	{use: "edit INTENT_ID --args FILE", short: "Change the arguments of a held intent", make: approvalsDecide(catalog.DecisionEdit)},
	{use: "reject INTENT_ID --reason TEXT", short: "Reject a held intent", make: approvalsDecide(catalog.DecisionReject)},
	{use: "request-changes INTENT_ID --reason TEXT", short: "Reject a held intent and say what should change", make: approvalsDecide(catalog.DecisionRequestChanges)},
}

// inPerson returns the key by which a person in a terminal decides: in place of the data directory's
// own, which programs use, too, that of the person who was alone with it.
func (c *command) inPerson(key string) string {
	if targetOf(c.Command).Key.From != datadir.KeyFile(c.dir) {
		return key
	}
	if person, err := datadir.PersonKey(c.dir); err == nil && person != "" {
		return person
	}
	return key
}

func approvalsDecide(decision string) func(*command) {
	return func(c *command) {
		said := catalog.Approve{Decision: decision}
		var args string
		var also catalog.Also
		var within time.Duration
		c.personFlags()
		c.ids = &pendingIntents
		c.answer = func(ids []string) (answer, error) {
			said.IntentID = ids[0]
			if decision == catalog.DecisionEdit {
				var err error
				if said.Args, err = c.edited(args); err != nil {
					return answer{}, err
				}
			}
			if also.Uses > 0 {
				also.WithinSec = int(within.Seconds())
				said.Also = &also
			} else if c.Flags().Changed("for") || len(also.Free) > 0 {
				return answer{}, usage(errors.New("--for and --free are of a standing approval: say with --also of how many later calls"))
			}
			decide := c.decide
			if c.signer != "" {
				decide = c.decideAsOperator
			}
			result, err := decide(said)
			return answer{data: result, text: render("decided", result), note: "intent " + ids[0] + "\n" + nextOf(result)}, err
		}
		f := c.Flags()
		c.signerFlag("private key file of an operator, who decides instead of the user of the API key")
		f.StringVar(&said.Reason, "reason", "", "reason, which is recorded")
		switch decision {
		case catalog.DecisionApprove:
			f.StringArrayVar(&said.Items, "item", nil, "item of a question that you say yes to; without it to all (repeatable)")
			f.IntVar(&also.Uses, "also", 0, "let so many later calls of the skill through in the same session, with the same input")
			f.DurationVar(&within, "for", time.Hour, "with --also: for how long, at most 8h")
			f.StringArrayVar(&also.Free, "free", nil, "with --also: member of the input that may differ (repeatable)")
		case catalog.DecisionWithdraw:
		case catalog.DecisionEdit:
			f.StringVar(&args, "args", "-", "file with the arguments of the intent as you want them, as JSON; - is standard input")
		default:
			c.mustGive("reason")
		}
	}
}

// edited reads the arguments that somebody wants an intent to have.
func (c *command) edited(from string) (json.RawMessage, error) {
	raw, err := c.input([]string{from})
	if err == nil && !json.Valid(raw) {
		err = malformed(errors.New("the arguments are no JSON: writ approvals show prints those of the intent with --json"))
	}
	return raw, err
}

// nextOf describes the next step after a decision.
func nextOf(result catalog.ApproveResult) string {
	switch {
	case result.Code == intents.Changed:
		return "the next task of the step signs it as you want it; it waits if others have to approve it: writ approvals list\n"
	case result.State == catalog.ApprovalEnded && result.Code == "":
		return "later calls wait for people again\n"
	case result.State == catalog.ApprovalEnded:
		return "nothing is carried out; the requester reads your reason\n"
	case result.State == catalog.ApprovalReleased:
		return "it is being carried out; see writ intent receipt get " + result.IntentID + "\n"
	default:
		return ""
	}
}

func (c *command) decide(said catalog.Approve) (result catalog.ApproveResult, err error) {
	path := approvalsPath + "/" + url.PathEscape(said.IntentID)
	said.IntentID = "" // the path names it
	err = c.post(path, said, &result)
	return result, err
}

func (c *command) decideAsOperator(said catalog.Approve) (result catalog.ApproveResult, err error) {
	a, err := c.intent("hitl.approve", said)
	if err != nil {
		return result, err
	}
	return result, json.Unmarshal(a.Outcome.Result, &result)
}
