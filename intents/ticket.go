package intents

import (
	"encoding/json"
	"strings"
	"time"
)

// Ticket is the router's instruction to an executor to carry out one intent now. Claims of a JWS of type writ-ticket+jws.
type Ticket struct {
	// Members are in the order of RFC 8785, here and below, so that encoding
	// a ticket gives its canonical bytes at once.
	Actor        Principal       `json:"actor"`
	Attempt      int             `json:"attempt"`
	BeginBy      time.Time       `json:"begin_by"`         // not begun then, by more than Leeway, it is not begun at all
	Client       string          `json:"client,omitempty"` // of logs.stream and artifact.get: act.client of the grant, for whom alone stream and link are
	Deadline     time.Time       `json:"deadline"`
	Erasures     int             `json:"erasures,omitempty"` // record.erase intents so far, where the pin allows cached answers
	Executor     string          `json:"executor"`
	Inputs       []Input         `json:"inputs,omitempty"`
	IntentID     string          `json:"intent_id"`
	Issuer       string          `json:"iss"`
	Key          string          `json:"key,omitempty"` // of the caller, whose intents share the executor; none for a vendor's
	Obligations  []Obligation    `json:"obligations,omitempty"`
	Oversees     bool            `json:"oversees,omitempty"` // of logs: the actor sees those of the whole tenant
	Pins         []Pin           `json:"pins,omitempty"`
	PolicyDigest string          `json:"policy_digest"`
	Position     int64           `json:"position"`
	RPM          int             `json:"rpm,omitempty"` // calls of the skill that the tenant may make in a minute; 0: any number
	Scope        *TaskScopeClaim `json:"scope,omitempty"`
	Sources      []Source        `json:"sources,omitempty"` // of what is stored: those of the intent's plan
	Type         string          `json:"type"`
	Types        []PayloadType   `json:"types,omitempty"` // of the payloads of enricher responses; none: any
}

// Principal is whom an intent acts for, as the grant says.
type Principal struct {
	Roles   []string `json:"roles,omitempty"`
	Session string   `json:"session_id,omitempty"`
	Tenant  string   `json:"tenant"`
	UserID  string   `json:"user_id"`
}

// TaskScopeClaim is what the task of an intent may read and write.
type TaskScopeClaim struct {
	Ask        string          `json:"ask,omitempty"` // the call that asked for the task; empty: it is the step's own
	Deadline   time.Time       `json:"deadline"`
	InputKey   string          `json:"input_key,omitempty"`  // the memory key that it may read
	InputKeys  []string        `json:"input_keys,omitempty"` // those, where there are several
	Plan       string          `json:"plan_id"`
	ReturnSpec json.RawMessage `json:"return_spec,omitempty"` // {reason, shape}
	Revision   int             `json:"revision"`
	Skills     []string        `json:"skills"`
	Step       int             `json:"step"`
	Task       string          `json:"task_id"`
}

// Inputs are the memory keys that the task may read beside its own.
func (c *TaskScopeClaim) Inputs() []string {
	if c.InputKey != "" {
		return []string{c.InputKey}
	}
	return c.InputKeys
}

// KindAgent is the kind of the pin of a remote agent: its digest is that of the agent's
// file in the registry, and its server the endpoint that the file names.
const KindAgent = "agent"

// Pin is an approved skill manifest. Skill is its id, <server>.<tool>. The digest covers the server that declares it;
// Server names that for people.
type Pin struct {
	CacheSeconds int    `json:"cache_seconds,omitempty"` // how long an answer may serve equal calls; 0: never
	Destructive  string `json:"destructive,omitempty"`   // see SkillInput
	Digest       string `json:"digest"`
	Effect       string `json:"effect"`
	Kind         string `json:"kind,omitempty"`       // KindAgent; empty: a skill
	Name         string `json:"name,omitempty"`       // of the tool, for models and MCP clients
	OpenWorld    string `json:"open_world,omitempty"` // see SkillInput
	Server       string `json:"server,omitempty"`
	Shared       bool   `json:"shared,omitempty"` // a cached answer serves every user of the tenant
	Since        int64  `json:"since,omitempty"`  // position of the approval, where answers may be cached
	Skill        string `json:"skill"`
	Summary      string `json:"summary,omitempty"` // of a call, for people who approve it
	Trusted      bool   `json:"trusted,omitempty"` // see SkillInput
}

// PayloadType is what the payload of an enricher response must match.
type PayloadType struct {
	DomainType string          `json:"domain_type"`
	EnricherID string          `json:"enricher_id"`
	Schema     json.RawMessage `json:"schema"`
	Version    string          `json:"version"` // semantic
}

// Input is the pin as a decision sees it.
func (p Pin) Input() SkillInput {
	return SkillInput{Name: p.Skill, Digest: p.Digest, Effect: p.Effect, Destructive: p.Destructive, Kind: p.Kind, Trusted: p.Trusted, OpenWorld: p.OpenWorld}
}

// Guarded reports whether calls of the skill wait for people by default: it acts once, or may
// destroy something.
func (p Pin) Guarded() bool {
	return p.Kind == "" && (p.Effect == "once" || p.Input().Destroys())
}

// Matches reports whether a name in the data of a tenant is that of the skill: its id or the name of its
// tool, where * stands for any characters.
func (p Pin) Matches(name string) bool {
	_, tool, _ := strings.Cut(p.Skill, ".")
	return Like(name, p.Skill) || tool != "" && Like(name, tool)
}

// Like reports whether a text matches a pattern, in which * stands for any characters.
func Like(pattern, text string) bool {
	parts := strings.Split(pattern, "*")
	text, ok := strings.CutPrefix(text, parts[0])
	if !ok || len(parts) == 1 {
		return ok && text == ""
	}
	last := len(parts) - 1
	for _, part := range parts[1:last] { // the leftmost place leaves the most text to the others
		if _, text, ok = strings.Cut(text, part); !ok {
			return false
		}
	}
	return strings.HasSuffix(text, parts[last])
}

// OfTool reports whether the skill is a server's tool of this name.
func (p Pin) OfTool(name string) bool {
	_, tool, _ := strings.Cut(p.Skill, ".")
	return tool != "" && tool == name
}

// Input is an argument that the router resolved from a member "from": the value
// itself, or a reference that the executor opens in Blobs.
type Input struct {
	Pointer string `json:"pointer"` // where the data belongs in args, such as /data
	Ref     string `json:"ref,omitempty"`
	SHA256  string `json:"sha256"`
	Size    int64  `json:"size_bytes,omitempty"`
	Step    int    `json:"step,omitempty"`  // of the run whose file it is; 0: the intent's own
	Value   []byte `json:"value,omitempty"` // the JSON text as it is, base64: signing must not change its numbers
}

// TicketLife is the time from the issue of a ticket to its begin_by.
const TicketLife = 2 * time.Second

// BeginEnds is when an executor stops to begin the intent, by its own clock.
func (t Ticket) BeginEnds() time.Time { return t.BeginBy.Add(Leeway) }

// IssueTicket signs a ticket with the router's key.
func IssueTicket(key Signer, t Ticket) (string, error) { return SignCompact(key, TypTicket, t) }

// OpenTicket verifies a ticket. Its times are not judged here.
func OpenTicket(token string, keys Keys) (Ticket, error) {
	var t Ticket
	key, err := OpenCompact(token, TypTicket, keys, &t)
	if err != nil {
		return Ticket{}, err
	}
	if key.Role != RoleRouter {
		return Ticket{}, Refuse(KeyRole, "", "ticket is not signed by a router")
	}
	return t, nil
}
