package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"aob.dev/writ/audit"
	"aob.dev/writ/intents"
	"aob.dev/writ/intents/catalog"
	"aob.dev/writ/internal/clock"
	"aob.dev/writ/internal/datadir"
	"aob.dev/writ/state"
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
		a, err := c.intent("intent.resolve", catalog.IntentResolve{IntentID: args[0], Status: args[1], Reason: *reason})
		if err != nil {
			return answer{}, err
		}
		return answer{data: putBy(a), text: a.IntentID + "\n", note: "intent " + args[0] + " is recorded as " + args[1] + "\n"}, nil
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

// erasedUser is the report of `writ user erase`.
type erasedUser struct {
	IntentID string `json:"intent_id"`
	Position *int64 `json:"position,omitempty"`
	Tenant   string `json:"tenant"`
	UserID   string `json:"user_id"`
	catalog.UserEraseResult
	Connections []catalog.EndedAccess `json:"connections,omitempty"`       // to skill servers
	NotRevoked  string                `json:"connections_error,omitempty"` // why they were removed without their authorization servers
}

// Waits of userErase: for intents of the user that are still carried out, from eraseFirstWait on and
// twice as long each time; and for an accepted erasure.
const (
	eraseFirstWait = time.Second
	eraseLastWait  = 16 * time.Second
	eraseAskAgain  = time.Second
)

// userErase disables a user, which ends the user's plans and holds, and then erases the user.
func userErase(c *command) {
	c.tenantFlags()
	reason := c.Flags().String("reason", "", "why; it is recorded and stays, so it must not contain what you erase")
	c.answer = func(args []string) (answer, error) {
		if *reason == "" {
			return answer{}, usage(errors.New("--reason: say why; it is recorded"))
		}
		o, err := c.operator()
		if err != nil {
			return answer{}, err
		}
		tenant, err := c.tenantOf(o)
		if err != nil {
			return answer{}, err
		}
		user := args[0]
		if user == o.Subject && tenant == o.Tenant {
			return answer{}, fmt.Errorf("%s is your own user: another operator must erase it, because you could not sign the erasure", user)
		}
		if c.unknownUser(o.Origin, tenant, user) {
			return answer{}, fmt.Errorf("tenant %s has no user %s, and no intent of such a user: nothing was changed", tenant, user)
		}
		if _, err := c.submitAs(o, "admin.put", catalog.AdminPut{Tenant: tenant, User: &catalog.User{UserID: user, Roles: []string{}, Disabled: true}}); err != nil {
			return answer{}, err
		}
		ended, notRevoked := c.disconnectAll(o, catalog.SkillDisconnect{Tenant: tenant, UserID: user})
		a, err := c.eraseEnded(o, catalog.UserErase{Tenant: tenant, UserID: user, Reason: *reason})
		if err != nil {
			return answer{}, fmt.Errorf("%w (user %s is disabled; the same command goes on)", err, user)
		}
		done := erasedUser{IntentID: a.IntentID, Position: a.Position, Tenant: tenant, UserID: user, Connections: ended}
		if notRevoked != nil {
			done.NotRevoked = notRevoked.Error()
		}
		if a.Outcome != nil && a.Outcome.Result != nil {
			if err := json.Unmarshal(a.Outcome.Result, &done.UserEraseResult); err != nil {
				return answer{}, malformed(err)
			}
		}
		return answer{data: done, text: render("erased", done)}, nil
	}
}

// disconnectAll ends a user's connections to skill servers while there are tokens that authorization servers can take
// back. An erasure goes on without.
func (c *command) disconnectAll(o *operator, all catalog.SkillDisconnect) ([]catalog.EndedAccess, error) {
	signed, err := o.Sign(catalog.TypeSkillDisconnect, all, time.Now())
	if err != nil {
		return nil, err
	}
	a, err := c.untilDone(o, signed)
	if err != nil || a.Outcome == nil {
		return nil, err
	}
	var out catalog.SkillDisconnectResult
	err = json.Unmarshal(a.Outcome.Result, &out)
	return out.Connections, err
}

// eraseEnded submits a user.erase, once the user's intents have ended, and waits until everything is
// gone.
func (c *command) eraseEnded(o *operator, erase catalog.UserErase) (*intents.Answer, error) {
	for wait := eraseFirstWait; ; wait *= 2 {
		signed, err := o.Sign("user.erase", erase, time.Now())
		if err != nil {
			return nil, malformed(err)
		}
		a, err := c.untilDone(o, signed)
		running := a != nil && a.Code == intents.MalformedArgs && strings.Contains(a.Reason, state.NotEnded)
		if !running || wait > eraseLastWait {
			return a, err
		}
		if err := clock.Sleep(c.Context(), wait); err != nil {
			return nil, err
		}
	}
}

// untilDone submits an intent, and again while it is in flight.
func (c *command) untilDone(o *operator, signed []byte) (*intents.Answer, error) {
	for {
		_, body, err := o.router.Submit(c.Context(), signed, "")
		if err != nil {
			return nil, err
		}
		a, err := answerIn(body, o.router.URL)
		if err != nil {
			return nil, err
		}
		if a.Code != intents.InFlight {
			return &a, errorOf(&a)
		}
		if err := clock.Sleep(c.Context(), eraseAskAgain); err != nil {
			return nil, err
		}
	}
}

// unknownUser reports that the log's record is here, and has nothing of a user.
func (c *command) unknownUser(origin, tenant, user string) (unknown bool) {
	_ = c.archive(func(in *datadir.Archive) error { // without a record the router knows
		if audit.NewTrust(in.Root).Origin != origin {
			return nil
		}
		for s, err := range audit.Read(c.Context(), in.Records, 0) {
			var a catalog.AdminPut
			switch {
			case err != nil:
				return err
			case s.Tenant == tenant && s.User == user:
				return nil
			case s.Type == state.TypeAdminPut && json.Unmarshal(s.Intent.Intent.Args, &a) == nil && a.User != nil && a.User.UserID == user && state.TargetTenant(s.Tenant, a.Tenant) == tenant:
				return nil
			}
		}
		unknown = true
		return nil
	})
	return unknown
}
