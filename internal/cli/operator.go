package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"aob.dev/writ/audit"
	"aob.dev/writ/intents"
	"aob.dev/writ/internal/client"
	"aob.dev/writ/internal/datadir"
	"aob.dev/writ/internal/keydir"
	"aob.dev/writ/state"
	"aob.dev/writ/storage"
)

// operatorFlags declares the flags for an operator's router and key.
func (c *command) operatorFlags() {
	c.placeFlags()
	c.signerFlag("private key file of the operator (default: the one in the data directory)")
}

// keys is the directory of private keys.
func (c *command) keys() string { return filepath.Join(c.dir, "keys") }

// operator is a person with an operator key, and the router that they use.
type operator struct {
	keydir.Operator
	set    intents.JWKS // in force when the command began
	router client.Client
}

// operator reads the operator's key and asks the router for the keys in force, which identify the
// key's owner.
func (c *command) operator() (*operator, error) {
	o := &operator{router: client.Client{URL: c.url}}
	var err error
	if o.set, err = c.keysInForce(); err != nil {
		return nil, err
	}
	if o.Key, err = c.operatorKey(o.set); err != nil {
		return nil, err
	}
	kid := o.Key.KID
	i := slices.IndexFunc(o.set.Keys, func(j intents.JWK) bool { return j.KID == kid })
	switch {
	case i < 0:
		return nil, fmt.Errorf("%s: the key %s is not in the key set in force: an operator of system must add it (writ admin keys add)", intents.KeyUnknown, kid)
	case o.set.Keys[i].Role != intents.RoleOperator:
		return nil, fmt.Errorf("%s: the key %s has the role %s: name an operator key with --signer", intents.KeyRole, kid, o.set.Keys[i].Role)
	case o.set.Keys[i].Revoked:
		return nil, fmt.Errorf("%s: the key %s is revoked: name another operator key with --signer", intents.KeyRevoked, kid)
	}
	o.Key.Raw = o.set.Keys[i].Raw
	o.Subject, o.Tenant, o.Origin = o.set.Keys[i].Subject, o.set.Keys[i].Tenant, o.set.Origin
	return o, nil
}

func (c *command) operatorKey(set intents.JWKS) (s intents.Signer, err error) {
	if c.signer != "" {
		return c.signingKey(intents.RoleOperator)
	}
	held, err := keydir.LoadAll(c.keys())
	if err != nil {
		return s, malformed(fmt.Errorf("%w: name a data directory with --data, or an operator key with --signer", err))
	}
	keys, err := held.InForce(set.Keys)
	s, there := keys[intents.RoleOperator]
	if there {
		return s, nil
	}
	if err == nil {
		err = errors.New("no operator key in the data directory is in force")
	}
	return s, err
}

// signingKey reads the private key of --signer.
func (c *command) signingKey(role intents.Role) (intents.Signer, error) {
	s, err := intents.ReadKey(c.signer, role)
	if err != nil {
		err = malformed(err)
	}
	return s, err
}

// intent opens the operator, signs an intent and submits it.
func (c *command) intent(typ string, args any) (*intents.Answer, error) {
	o, err := c.operator()
	if err != nil {
		return nil, err
	}
	return c.submitAs(o, typ, args)
}

// submitAs signs and submits. Every code but OK is an error.
func (c *command) submitAs(o *operator, typ string, args any) (*intents.Answer, error) {
	signed, err := o.Sign(typ, args, time.Now())
	if err != nil {
		return nil, malformed(err)
	}
	_, body, err := o.router.Submit(c.Context(), signed, "")
	if err != nil {
		return nil, err
	}
	a, err := answerIn(body, o.router.URL)
	if err != nil {
		return nil, err
	}
	return &a, errorOf(&a)
}

// errorOf is the error of every code but OK.
func errorOf(a *intents.Answer) error {
	switch a.Code {
	case intents.OK:
		return nil
	case intents.ApprovalRequired:
		return fmt.Errorf("%s: %s waits for approval; nothing has changed", a.Code, a.IntentID)
	default:
		return fmt.Errorf("%s: %s", a.Code, a.Reason)
	}
}

// answerIn is a router's answer to an intent.
func answerIn(body []byte, url string) (a intents.Answer, err error) {
	if err := json.Unmarshal(body, &a); err != nil || a.Code == "" {
		return a, malformed(fmt.Errorf("the answer of %s is not an answer to an intent", url))
	}
	return a, nil
}

func putBy(a *intents.Answer) put { return put{IntentID: a.IntentID, Position: a.Position} }

// put is the output of an operator's command with --json: the intent and its changes.
type put struct {
	IntentID string    `json:"intent_id"`
	Position *int64    `json:"position,omitempty"`
	Changes  *[]change `json:"changes,omitempty"` // absent: the record is not here, or has no rows of the kind

	tenant string
}

// change is the change of a row, or of a member of it. A new row or member has no From, a removed
// one no To.
type change struct {
	Row    string          `json:"row"` // such as "user ben"
	Member string          `json:"member,omitempty"`
	From   json.RawMessage `json:"from,omitempty"`
	To     json.RawMessage `json:"to,omitempty"`
}

// rows are the rows that puts change, by name, each with its members.
type rows map[string]map[string]json.RawMessage

// add a row, without members that say nothing to people.
func (r rows) add(name string, row any, without ...string) {
	members := map[string]json.RawMessage{}
	raw, err := json.Marshal(row)
	if err == nil {
		err = json.Unmarshal(raw, &members)
	}
	if err == nil {
		for _, member := range append(without, "since") { // since: the position of an approval
			delete(members, member)
		}
		r[name] = members
	}
}

// tenantRowsOf a tenant are its rows, and the policy of all.
func tenantRowsOf(d *state.State, tenant string) rows {
	r := rows{}
	pushed, revision := d.PolicyPushed()
	policy := map[string]any{"revision": revision}
	if pushed != nil {
		policy["digest"] = pushed.Digest
	}
	r.add("policy", policy)
	t, there := d.Rows(tenant)
	if !there {
		return r
	}
	r.add("tenant "+tenant, struct{}{})
	for _, x := range t.Roles {
		r.add("role "+x.Role, x)
	}
	for _, x := range t.Users {
		r.add("user "+x.UserID, x)
	}
	for _, x := range t.APIKeys {
		r.add("API key "+x.ID, x, "hash")
	}
	for _, x := range t.Skills {
		r.add("skill "+x.Skill, x)
	}
	for key, value := range t.Data {
		r.add("data "+key, map[string]json.RawMessage{"value": value})
	}
	if t.Registry != nil {
		r.add("agents", t.Registry)
	}
	return r
}

// keyRowsOf a key set.
func keyRowsOf(keys []intents.JWK) rows {
	r := rows{}
	for _, j := range keys {
		r.add(string(j.Role)+" key "+j.KID, j, "kty", "crv", "x", "alg", "use")
	}
	return r
}

// changed are the differences of two states of rows.
func (r rows) changed(after rows) *[]change {
	all := maps.Clone(r)
	maps.Copy(all, after)
	out := []change{}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		was, before := r[name]
		is, now := after[name]
		if before != now {
			out = append(out, change{Row: name, From: whole(was, before), To: whole(is, now)})
			continue
		}
		members := maps.Clone(was)
		maps.Copy(members, is)
		for _, member := range slices.Sorted(maps.Keys(members)) {
			if string(was[member]) != string(is[member]) {
				out = append(out, change{name, member, was[member], is[member]})
			}
		}
	}
	return &out
}

// whole is a row as a document; none, where it is not there.
func whole(row map[string]json.RawMessage, there bool) json.RawMessage {
	if !there {
		return nil
	}
	raw, _ := json.Marshal(row) // of JSON
	return raw
}

// changesTime bounds reading a long record while a person waits.
const changesTime = 2 * time.Second

// changesBy returns an intent's changes to the rows of a tenant, from the record of the data
// directory; nil: the record of that log is not here, or too long.
func (c *command) changesBy(origin, tenant string, a *intents.Answer) (found *[]change) {
	if a.Position == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(c.Context(), changesTime)
	defer cancel()
	_ = c.archive(func(in *datadir.Archive) error { // unreadable data is omitted
		if audit.NewTrust(in.Root).Origin != origin {
			return nil
		}
		rebuilt, before := state.New(), rows(nil)
		for rec, err := range in.Records.Scan(ctx, 0) {
			switch {
			case err != nil:
				return err
			case rec.Position == *a.Position:
				before = tenantRowsOf(rebuilt, tenant)
			case rec.Position > *a.Position && rec.Kind != storage.KindOutcome || rec.Position > *a.Position+1:
				found = before.changed(tenantRowsOf(rebuilt, tenant))
				return nil
			}
			rebuilt.Observe(state.EntryOf(rec))
		}
		if before != nil { // else the record here is a copy from before the intent
			found = before.changed(tenantRowsOf(rebuilt, tenant))
		}
		return nil
	})
	return found
}

// text lists the changes, one per line.
func (p put) text() string {
	of := ""
	if p.tenant != "" {
		of = " of tenant " + p.tenant
	}
	if p.Changes == nil {
		return "it is in force. The record says what it changed: writ audit show " + p.IntentID + " --data DIR, on the machine that has it\n"
	}
	var lines strings.Builder
	for _, x := range *p.Changes {
		switch {
		case strings.HasPrefix(x.Row, "tenant "):
			return "created " + printable(x.Row) + ", with the roles that each tenant has\n"
		case x.Row == "data alone": // it only ever ends
			lines.WriteString("from now on nobody" + of + " approves what they asked for themselves")
		case x.Member != "":
			lines.WriteString(oneLine(x.Row+of+": "+x.Member+" "+orNone(x.From)+" → "+orNone(x.To), 400))
		case x.From == nil:
			lines.WriteString(oneLine("created "+x.Row+of+created(x), 400))
		default:
			lines.WriteString("removed " + printable(x.Row) + of)
		}
		lines.WriteString("\n")
	}
	if len(*p.Changes) == 0 {
		return "nothing changed: all of it was in force already\n"
	}
	return lines.String()
}

// created are the members of a new row, except its name.
func created(x change) string {
	var members map[string]json.RawMessage
	_ = json.Unmarshal(x.To, &members) // it is an object
	var all []string
	for _, name := range slices.Sorted(maps.Keys(members)) {
		if value := string(members[name]); !strings.HasSuffix(x.Row, " "+strings.Trim(value, `"`)) {
			all = append(all, name+" "+value)
		}
	}
	if all == nil {
		return ""
	}
	return ": " + strings.Join(all, ", ")
}

func orNone(value json.RawMessage) string {
	if len(value) == 0 {
		return "(none)"
	}
	return string(value)
}

// answer has the intent and its changes.
func (p put) answer() answer {
	return answer{data: p, text: p.IntentID + "\n", note: p.text()}
}
