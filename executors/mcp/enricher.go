package mcp

import (
	"bytes"
	"crypto/hmac"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"aob.dev/writ/intents"
)

// Envelope is the enricher envelope without the members that are only checked.
type Envelope struct {
	Payload    json.RawMessage // the skill's own data; status ok or partial
	Partial    bool            // some sources failed: the answer may say so
	DomainType string
	EnricherID string
	Version    string          // semver of the payload's schema, as sent
	CacheMeta  json.RawMessage // for traces only
	Odd        []string        // what the payload lacks
}

// dataUnavailable is all that a user or a model is shown of a suppressed or failed
// response.
const dataUnavailable = "data unavailable"

// envelopeMembers are in every enricher response.
var envelopeMembers = []string{"status", "payload", "domain_type", "enricher_id"}

// deciding are the members that say what becomes of a response.
var deciding = []string{"status", "domain_type", "enricher_id", "version", "principal", "principal_hmac"}

// Members returns the members of a JSON object, whose names are each there once. A value may be readable in two ways.
func Members(data []byte) (map[string]json.RawMessage, error) {
	dec := json.NewDecoder(bytes.NewReader(data))
	if begin, err := dec.Token(); err != nil || begin != json.Delim('{') {
		return nil, errors.New("it is no object")
	}
	out := map[string]json.RawMessage{}
	for dec.More() {
		token, err := dec.Token()
		name, _ := token.(string)
		var value json.RawMessage
		if err = errors.Join(err, dec.Decode(&value)); err != nil {
			return nil, err
		}
		if _, twice := out[name]; twice {
			return nil, errors.New("it has a member twice")
		}
		out[name] = value
	}
	return out, nil
}

// TakesPrincipal reports whether this is an enricher whose input has the principal as a member,
// which a model must not write.
func (m *Manifest) TakesPrincipal() bool {
	return m.declares(envelopeMembers...) && declare(m.InputSchema, "principal")
}

// declares reports whether the output schema has all of these properties.
func (m *Manifest) declares(names ...string) bool { return declare(m.OutputSchema, names...) }

func declare(schema json.RawMessage, names ...string) bool {
	plain := !bytes.Contains(schema, []byte(`\`)) // no name is spelt with escapes
	if plain && slices.ContainsFunc(names, func(name string) bool { return !bytes.Contains(schema, []byte(`"`+name+`"`)) }) {
		return false // nearly all: it spares reading the schema
	}
	var s struct {
		Properties map[string]json.RawMessage `json:"properties"`
	}
	if len(schema) == 0 || json.Unmarshal(schema, &s) != nil {
		return false
	}
	return !slices.ContainsFunc(names, func(name string) bool { _, ok := s.Properties[name]; return !ok })
}

// Unwrap takes the payload out of an enricher response. It must run before anything
// else reads a skill's output. A nil envelope and a nil error mean that data is no
// enricher response.
//
// The principal is checked first, whatever the status: one that differs from the
// given principal, or is missing where the manifest declares it, is ErrPrincipal,
// to be counted and alerted, never retried; so is a proof that differs, unless none is
// needed. Then the status alone decides: error is ErrTool. What decides has one reading; the form of the payload
// fails nothing.
func (m *Manifest) Unwrap(data []byte, principal, proof string) (*Envelope, error) {
	var members map[string]json.RawMessage
	err := json.Unmarshal(data, &members)
	_, status := members["status"]
	_, domain := members["domain_type"]
	_, id := members["enricher_id"]
	isEnvelope := status && domain && id
	declared := m.declares(envelopeMembers...)
	if !isEnvelope && !declared {
		return nil, nil
	}
	if err == nil { // two readers could see two principals
		members, err = Members(data)
	}
	for _, name := range deciding {
		if err == nil && members[name] != nil {
			err = intents.Unambiguous(members[name])
		}
	}
	if err != nil || !isEnvelope {
		return nil, &Error{Kind: ErrSchema, Tool: m.Name, Reason: "not an enricher response", Err: err}
	}
	named, present := members["principal"]
	if (present && !none(named) || declared && m.declares("principal")) && !isText(named, principal) || proof != "" && !isText(members["principal_hmac"], proof) {
		return nil, &Error{Kind: ErrPrincipal, Tool: m.Name, Reason: dataUnavailable}
	}
	return m.open(members)
}

func (m *Manifest) open(members map[string]json.RawMessage) (*Envelope, error) {
	var status string
	if err := json.Unmarshal(members["status"], &status); err != nil {
		status = ""
	}
	switch status {
	case "ok", "partial":
	case "error":
		return nil, &Error{Kind: ErrTool, Tool: m.Name, Reason: dataUnavailable}
	default:
		return nil, &Error{Kind: ErrSchema, Tool: m.Name, Reason: "the status of an enricher response is ok, partial or error"}
	}
	e := &Envelope{Payload: members["payload"], Partial: status == "partial", CacheMeta: members["cache_meta"]}
	switch {
	case e.Payload == nil:
		e.Payload, e.Odd = json.RawMessage("null"), []string{"it has no payload"}
	case intents.Unambiguous(e.Payload) != nil:
		e.Payload, _ = json.Marshal(string(e.Payload)) // a text
		e.Odd = []string{"its payload can be read in two ways, and is given as a text"}
	}
	for name, to := range map[string]*string{"domain_type": &e.DomainType, "enricher_id": &e.EnricherID, "version": &e.Version} {
		if raw, ok := members[name]; ok && !none(raw) {
			if err := json.Unmarshal(raw, to); err != nil {
				return nil, &Error{Kind: ErrSchema, Tool: m.Name, Reason: fmt.Sprintf("%s of an enricher response is not a text", name)}
			}
		}
	}
	return e, nil
}

// isText reports whether raw is the JSON text want, which is not empty. Its duration reveals
// nothing about the text.
func isText(raw json.RawMessage, want string) bool {
	var got *string
	return want != "" && json.Unmarshal(raw, &got) == nil && got != nil && hmac.Equal([]byte(*got), []byte(want))
}
