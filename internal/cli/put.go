package cli

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"

	"aob.dev/writ/audit"
	"aob.dev/writ/intents"
	"aob.dev/writ/internal/datadir"
	"aob.dev/writ/state"
	"aob.dev/writ/storage"
)

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
